import type { Command } from 'commander'
import { configOption, endWith } from './command.ts'
import { openForCommand } from './open.ts'
import { type CommonOptions, oneLine, type Terminal } from './terminal.ts'

export function register(program: Command, terminal: Terminal): void {
  program
    .command('finalize')
    .description('finish uploads whose last steps failed')
    .argument('[id]', 'finalizationId; default: all that wait')
    .addOption(configOption())
    .addHelpText(
      'after',
      `
Examples:
  upload-server finalize                     all that wait
  upload-server finalize 01jd3k8q            one of them`,
    )
    .action((id: string | undefined, options: CommonOptions) => endWith(finalize(id, options, terminal)))
}

/** `upload-server finalize [ID]`: finishes uploads whose last steps failed; without an id all of them. */
async function finalize(id: string | undefined, options: CommonOptions, terminal: Terminal): Promise<number> {
  const { mask, uploader } = await openForCommand(options, terminal)
  try {
    const ids = id === undefined ? (await uploader.store.pending()).map(job => job.id) : [id]
    if (ids.length === 0) terminal.note('No upload waits to be finished.')
    let failures = 0
    for (const one of ids) {
      try {
        const job = await uploader.finalizer.retry(one, AbortSignal.timeout(10 * 60 * 1000))
        if (job === undefined) throw new Error('no upload waits to be finished under this id')
        terminal.print(oneLine(`finished  ${one}  ${job.files.map(file => file.url).join(' ')}`))
      } catch (error) {
        failures++
        terminal.note(oneLine(`failed    ${one}  ${mask((error as Error).message)}`))
      }
    }
    return failures === 0 ? 0 : 1
  } finally {
    await uploader.close()
  }
}
