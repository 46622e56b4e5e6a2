import { stat } from 'node:fs/promises'
import { dirname, relative, resolve } from 'node:path'
import { type Command, InvalidArgumentError } from 'commander'
import type { NamedNote, NoteReport } from '../notes/move-pictures.ts'
import { configOption, endWith, keyOption, parseServer } from './command.ts'
import { type Desk, type DeskOptions, openDesk, openRemoteDesk } from './picture-desk.ts'
import { bar, startProgress } from './progress.ts'
import { INTERRUPTED, oneLine, type Terminal } from './terminal.ts'

interface MarkdownOptions extends DeskOptions {
  dryRun?: boolean
  backup: boolean
}

/** As commander hands them over. */
type Typed = Omit<MarkdownOptions, 'from'> & Partial<Pick<MarkdownOptions, 'from'>>

export function register(program: Command, terminal: Terminal): void {
  program
    .command('markdown')
    .description('upload the pictures that notes show and put their links in')
    .argument('<file...>', 'notes, or folders of notes')
    .addOption(configOption())
    .option('-n, --dry-run', 'show what would change; upload and write nothing')
    .option('--from <host[:port]>', 'move pictures that lie there instead of local ones; repeatable', addHost)
    .option('--no-backup', 'keep no copy of a note beside it (NOTE.md.bak)')
    .option('--picbed <provider>', 'provider of the destination')
    .option('--config-name <name>', 'saved configuration of the provider')
    .option('--server <url>', 'send through a running server', parseServer)
    .addOption(keyOption())
    .addHelpText(
      'after',
      `
Examples:
  upload-server markdown --dry-run notes/    what would change, as a diff
  upload-server markdown notes/ README.md
  upload-server markdown --from old.example.com --picbed s3 notes/

Images, <img> and ![[embeds]] are found; a link that fails stays as it is and is named. It ends with 0 when none has,
with 1 otherwise, and with 130 after Ctrl-C.`,
    )
    .action((names: string[], { from = [], ...options }: Typed) =>
      endWith(terminal, markdown(names, { ...options, from }, terminal, terminal.untilInterrupted())),
    )
}

function addHost(text: string, before: readonly string[] = []): string[] {
  const address = /^https?:\/\//i.test(text) ? text : `http://${text}`
  const url = URL.canParse(address) ? new URL(address) : undefined
  if (!url || !['', '/'].includes(url.pathname + url.search + url.hash) || url.username !== '')
    throw new InvalidArgumentError('A host is written img.example.com or 127.0.0.1:36677.')
  return [...before, url.host]
}

/**
 * `upload-server markdown NOTE.md… FOLDER…`: what changed on standard output, what failed on standard error; 0 only when
 * every link that should change did.
 */
async function markdown(
  names: readonly string[],
  options: MarkdownOptions,
  terminal: Terminal,
  signal: AbortSignal,
): Promise<number> {
  if (options.server && options.from.length > 0)
    throw new Error('--from needs the destination here: give --config instead of --server.')
  const { movePictures } = await import('../notes/move-pictures.ts')
  const progress = startProgress('Looking for notes', terminal)
  const reports: NoteReport[] = []
  let desk: Desk | undefined
  let notes: NamedNote[] = []
  let seen = 0
  try {
    notes = await findNotes(names, terminal, (path, reason) =>
      reports.push({ path, links: 0, failures: [{ reason }] }),
    )
    if (!options.dryRun) desk = await (options.server ? openRemoteDesk : openDesk)(options, terminal, signal)
    await movePictures(notes, {
      from: options.from,
      isDryRun: options.dryRun === true,
      withBackup: options.backup,
      signal,
      store: pictures => desk?.store(pictures) ?? Promise.resolve([]),
      onNote: report => {
        reports.push(report)
        progress.update(bar(++seen, notes.length, 'notes'))
      },
    })
  } finally {
    progress.stop()
    await desk?.close()
  }
  say(reports, options, terminal)
  for (const line of desk?.remarks ?? []) terminal.note(line)
  if (signal.aborted) {
    terminal.note(`Interrupted: ${seen} of ${notes.length} notes were looked at. Repeat the command.`)
    return INTERRUPTED
  }
  const hasFailed = reports.some(({ failures }) => failures.length > 0)
  return hasFailed || desk?.isUnfinished ? 1 : 0
}

/** Notes as they were named, then those of folders. */
async function findNotes(
  names: readonly string[],
  { cwd }: Terminal,
  fail: (path: string, reason: string) => void,
): Promise<NamedNote[]> {
  const { walk } = await import('../notes/vault.ts')
  const found = new Map<string, NamedNote>()
  for (const name of names) {
    const path = resolve(cwd, name)
    const status = await stat(path).catch(() => undefined)
    if (status === undefined) fail(path, 'there is no such file or folder')
    else if (!status.isDirectory()) found.set(path, { path, folder: dirname(path) })
    else {
      const failed = (folder: string, error: unknown) => fail(folder, (error as Error).message)
      for await (const note of walk(path, failed))
        if (/\.(?:md|markdown)$/i.test(note)) found.set(note, { path: note, folder: path })
    }
  }
  return [...found.values()]
}

function say(reports: readonly NoteReport[], { dryRun }: MarkdownOptions, terminal: Terminal): void {
  const shown = (path: string) => relative(terminal.cwd, path) || '.'
  for (const { path, links, diff } of reports) {
    if (diff !== undefined)
      terminal.print(
        `${oneLine(`--- ${shown(path)}`)}\n${oneLine(`+++ ${shown(path)}`)}\n${diff.replace(/\r$/gm, '')}`,
      )
    else if (links > 0) terminal.print(oneLine(`${shown(path)}: ${count(links, 'link')}`))
  }
  let failed = 0
  for (const { path, failures } of reports) {
    failed += failures.length
    for (const { line, target, reason } of failures) {
      const where = [shown(path), ...(line === undefined ? [] : [line])].join(':')
      const what = target === undefined ? '' : `${target.slice(0, 200)}: `
      terminal.note(oneLine(terminal.mask(`${where}: ${what}${reason}`)))
    }
  }
  const changed = reports.filter(({ links }) => links > 0)
  const links = changed.reduce((sum, one) => sum + one.links, 0)
  const done = dryRun ? 'would change' : 'changed'
  const rest = failed > 0 ? `; ${count(failed, 'failure')}` : ''
  terminal.note(
    `${count(links, 'link')} in ${changed.length} of ${count(reports.length, 'note')} ${done}${rest}.`,
  )
}

const count = (number: number, what: string) => `${number} ${what}${number === 1 ? '' : 's'}`
