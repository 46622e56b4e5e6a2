import type { Command } from 'commander'
import { configOption, endWith, keyOption, parseServer } from './command.ts'
import { openForCommand } from './open.ts'
import { openRemote } from './remote.ts'
import { type CommonOptions, oneLine, type Terminal } from './terminal.ts'

interface FinalizeOptions extends CommonOptions {
  /** Address of a running server to finish at. */
  server?: string
  key?: string
}

export function register(program: Command, terminal: Terminal): void {
  program
    .command('finalize')
    .description('finish uploads whose last steps failed')
    .argument('[id...]', 'finalizationId; default: all that wait')
    .addOption(configOption())
    .option('--server <url>', 'have a running server finish them, by their ids', parseServer)
    .addOption(keyOption())
    .addHelpText(
      'after',
      `
Examples:
  upload-server finalize                     all that wait
  upload-server finalize 01jd3k8q            one of them
  upload-server finalize --server https://img.example.com 01jd3k8q`,
    )
    .action((ids: string[], options: FinalizeOptions) => {
      const { server } = options
      return endWith(
        terminal,
        server === undefined ? finalize(ids, options, terminal) : finishAt(server, ids, options, terminal),
      )
    })
}

/** For how long the last steps of one upload may take. */
const MOST_MS = 10 * 60 * 1000

/** `upload-server finalize [ID…]`: finishes uploads whose last steps failed; without an id all of them. */
async function finalize(
  named: readonly string[],
  options: CommonOptions,
  terminal: Terminal,
): Promise<number> {
  const { mask, uploader } = await openForCommand(options, terminal)
  try {
    const ids = named.length > 0 ? named : (await uploader.store.pending()).map(job => job.id)
    if (ids.length === 0) terminal.note('No upload waits to be finished.')
    return await finishEach(ids, { ...terminal, mask }, async id => {
      const job = await uploader.finalizer.retry(id, AbortSignal.timeout(MOST_MS))
      if (job === undefined) throw new Error('no upload waits to be finished under this id')
      return job.files.map(file => file.url)
    })
  } finally {
    await uploader.close()
  }
}

/** The same by a running server. It tells nobody which uploads wait. */
async function finishAt(
  server: string,
  ids: readonly string[],
  { key }: FinalizeOptions,
  terminal: Terminal,
): Promise<number> {
  if (ids.length === 0)
    throw new Error('--server needs the finalizationId of each upload, as "upload" has printed it.')
  const remote = openRemote(server, key, terminal)
  return finishEach(ids, terminal, async id => {
    // How many files it had is not known here; all of them have a link.
    const reply = await remote.post(
      { query: { finalizationId: id }, count: Infinity },
      AbortSignal.timeout(MOST_MS),
    )
    const urls = reply.outcomes.flatMap(({ url = [] }) => url)
    if (reply.status !== 200 || urls.length === 0) throw new Error(reply.message ?? 'the answer has no link')
    return urls
  })
}

async function finishEach(
  ids: readonly string[],
  terminal: Terminal,
  finish: (id: string) => Promise<readonly string[]>,
): Promise<number> {
  let failures = 0
  for (const id of ids) {
    try {
      terminal.print(oneLine(`finished  ${id}  ${(await finish(id)).join(' ')}`))
    } catch (error) {
      failures++
      terminal.note(oneLine(`failed    ${id}  ${terminal.mask((error as Error).message)}`))
    }
  }
  return failures === 0 ? 0 : 1
}
