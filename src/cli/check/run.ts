import { messageOf } from '../../errors.ts'
import { tryOut } from '../../server/try-out.ts'
import { chooseDestination, type Destination, idOf, splitId } from '../../uploader/destinations.ts'
import type { Call } from '../define.ts'
import { openForCommand } from '../open.ts'
import { type CommonOptions, oneLine, type Terminal } from '../terminal.ts'
import type { flags } from './index.ts'

export const run = ({ words: [id], options }: Call<typeof flags>, terminal: Terminal) =>
  check(id, options, terminal)

/**
 * `upload-server check [DEST]`: stores an image at each destination, downloads it, compares it and deletes it.
 *
 * @param prepare called before the test of each destination, which fails if it throws
 */
export async function check(
  id: string | undefined,
  options: CommonOptions,
  terminal: Terminal,
  prepare?: (destination: Destination) => Promise<void>,
): Promise<number> {
  const notes: string[] = []
  const { config, uploader } = await openForCommand(options, terminal, { warn: note => notes.push(note) })
  const say = (state: string, text: string) =>
    terminal.print(oneLine(`${state.padEnd(8)}${terminal.mask(text)}`))
  try {
    let chosen = uploader.destinations
    if (id !== undefined) {
      const { type: picbed, name: configName } = splitId(id)
      const { settings, leftOut } = config
      const choice = { picbed, configName }
      chosen = [chooseDestination(chosen, settings.default, choice, undefined, leftOut)]
    }
    let code = 0
    for (const destination of chosen) {
      notes.length = 0 // The server reports the notes of opening when it starts.
      try {
        await prepare?.(destination)
        const done = await tryOut(destination, uploader, config)
        const proxies = [...(destination.outgoing?.used ?? [])].join(' and ')
        say('ok', `${idOf(destination)}: ${done}${proxies && `, through the proxy ${proxies}`}`)
      } catch (error) {
        code = 1
        say('FAILED', `${idOf(destination)}: ${messageOf(error)}`)
      }
      for (const note of notes) say('note', note)
    }
    return code
  } finally {
    await uploader.close()
  }
}
