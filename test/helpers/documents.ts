import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'

export const FENCED = /^```(.*)\n([\s\S]*?)^```$/gm

/** The Markdown files of a folder. */
export const inFolder = (folder: string) =>
  readdirSync(folder)
    .filter(name => name.endsWith('.md'))
    .map(name => join(folder, name))

const isFolder = (path: string) => statSync(path).isDirectory()
const FOLDERS = readdirSync('docs')
  .map(name => join('docs', name))
  .filter(isFolder)

/** Every document, with its blocks. */
export const DOCUMENTS = ['.', 'docs', ...FOLDERS, 'bench'].flatMap(inFolder).map(file => ({
  file,
  blocks: readBlocks(readFileSync(file, 'utf8')),
}))

/** The fenced blocks of a document. */
export function readBlocks(document: string): { kind: string; code: string }[] {
  return [...document.matchAll(FENCED)].map(([, kind = '', code = '']) => ({ kind, code }))
}

/** The example destinations of a provider by their names: the first block below "Configuration" on its page. */
export function examplesOf(type: string): Record<string, Record<string, unknown>> {
  const [, page = ''] = readFileSync(`docs/destinations/${type}.md`, 'utf8').split('## Configuration')
  return JSON.parse(readBlocks(page)[0]?.code ?? '').providers[type]
}
