import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { JOBS, needsDesk, prepareDesk, scriptsOf } from '../helpers/desk.ts'
import { DOCUMENTS, readBlocks } from '../helpers/documents.ts'
import { runProgram } from '../helpers/run-program.ts'

const LINK = /^http:\S+\/picture-[0-9a-f]{8}\.png\n$/

const ANSWERED = ['README.md', 'docs/guides/send-files.md']

const TO_RUN = DOCUMENTS.filter(
  ({ file, blocks }) => !ANSWERED.includes(file) && blocks.some(({ kind }) => isRunHere(kind)),
)

it.for(TO_RUN)('every command of $file works', { timeout: 60_000 }, async ({ blocks }, context) => {
  needsDesk(context)
  const desk = await prepareDesk()
  for (const { kind, code } of blocks) {
    const file = / file=(\S+)$/.exec(kind)?.[1]
    if (file !== undefined) await writeFile(join(desk.directory, file), code)
    if (kind === 'sh server') await desk.serve(code)
    else if (kind === 'sh') await desk.run(code)
    else if (JOBS.includes(kind)) for (const script of scriptsOf(code)) await desk.run(script)
  }
})

function isRunHere(kind: string): boolean {
  return kind === 'sh' || kind === 'sh server'
}

it.for(ANSWERED)(
  'every answer in %s is what its command prints',
  { timeout: 60_000 },
  async (file, context) => {
    needsDesk(context)
    const desk = await prepareDesk()
    const folder = (directory: string) => ({ directory, serve: true })
    const config = {
      default: 'local/Default',
      sources: { url: { allowPrivate: true } },
      providers: { local: { Default: folder('default'), blog: folder('blog') } },
    }
    await mkdir(join(desk.directory, '.config/upload-server'), { recursive: true })
    await writeFile(join(desk.directory, '.config/upload-server/config.json'), JSON.stringify(config))
    await desk.serve('upload-server --port 36677\n')
    const link = (
      await desk.run('upload-server upload -q --server http://127.0.0.1:36677 picture.png\n')
    ).trim()
    const blocks = readBlocks(await readFile(file, 'utf8'))
    expect(blocks.filter(({ kind }) => kind === 'console')).not.toEqual([])
    const { exitCode } = await runProgram('python3', ['-c', 'import requests'])
    for (const { kind, code } of blocks) {
      const runAs = (name: string, program: string) =>
        desk.run(`cat > ${name} <<'END'\n${code}END\n${program} ${name}\n`)
      if (kind === 'js') expect(await runAs('example.mjs', 'node')).toMatch(LINK)
      if (kind === 'python' && exitCode === 0) expect(await runAs('example.py', 'python3')).toMatch(LINK)
      if (kind === 'sh') expect(await desk.run(code)).toContain('"success":true')
      if (kind !== 'console') continue
      const [, command = '', answer = ''] = /^\$ (.*)\n([\s\S]*)$/.exec(code) ?? []
      const here = command
        .replace('https://example.com/other.png', link)
        .replaceAll('/home/me', desk.directory)
      const printed = await desk.run(here.replace('curl ', 'curl -sS '))
      expect(printed.replaceAll(desk.directory, '/home/me').trim()).toMatch(toPattern(answer.trim()))
    }
  },
)

/** What an answer in a document stands for: any name, date, size and port of a stored file, and anything for an ellipsis. */
function toPattern(answer: string): RegExp {
  const pattern = answer
    .replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
    .replace(/[\w-]+-[0-9a-f]{8}\b/g, '[\\w-]+-[0-9a-f]{8}')
    .replaceAll('/2026/11/', '/\\d{4}/\\d{2}/')
    .replace(/"size":\d+/g, '"size":\\d+')
    .replace(/"sha256":"\w+/g, '"sha256":"\\w+')
    .replaceAll('127\\.0\\.0\\.1:36677', '127\\.0\\.0\\.1:\\d+')
    .replaceAll('…', '.*')
  return new RegExp(`^${pattern}$`)
}

it('docs/reference/errors.md has every error code, those of the command line last', async () => {
  const source = await readFile('src/errors.ts', 'utf8')
  const codes = [...source.matchAll(/^ {2}\| '(\w+)'$/gm)].map(([, code]) => code)
  const client = await readFile('src/client/api/connection.ts', 'utf8')
  const ofClient = new Set([...client.matchAll(/failure\('(\w+)'/g)].map(([, code]) => code))
  const document = await readFile('docs/reference/errors.md', 'utf8')
  const described = [...document.matchAll(/^### (\w+)$/gm)].map(([, code]) => code)
  expect(described.slice(0, codes.length)).toEqual(codes)
  expect(new Set(described.slice(codes.length))).toEqual(
    new Set([...ofClient].filter(code => !codes.includes(code))),
  )
})
