import { messageOf } from '../../errors.ts'
import { tryOut } from '../../server/try-out.ts'
import { chooseDestination, type Destination, splitId } from '../../uploader/destinations.ts'
import type { Call } from '../define.ts'
import { type ConfigOption, withUploader } from '../open.ts'
import { oneLine, type Terminal } from '../terminal.ts'
import type { flags } from './index.ts'

export const run = ({ words: [id], options }: Call<typeof flags>, terminal: Terminal) =>
  check(id, options, terminal)

/**
 * `upload-server check [DEST]`: stores an image at each destination, downloads it, compares it and deletes it.
 *
 * @param prepare called before the test of each destination, which fails if it throws
 */
export function check(
  id: string | undefined,
  options: ConfigOption,
  terminal: Terminal,
  prepare?: (destination: Destination) => Promise<void>,
): Promise<number> {
  const say = (state: string, text: string) =>
    terminal.print(oneLine(`${state.padEnd(8)}${terminal.mask(text)}`))
  // The server reports the notes of opening when it starts.
  const notes: string[] = []
  const warn = (note: string) => void notes.push(note)
  return withUploader(options, terminal, { warn }, async ({ config, uploader }) => {
    let chosen = uploader.destinations
    if (id !== undefined) {
      const { type: picbed, name: configName } = splitId(id)
      chosen = [chooseDestination(uploader, { picbed, configName })]
    }
    let code = 0
    for (const destination of chosen) {
      notes.length = 0
      try {
        await prepare?.(destination)
        const done = await tryOut(destination, uploader, config)
        const proxies = [...(destination.outgoing?.used ?? [])].join(' and ')
        say('ok', `${destination.id}: ${done}${proxies && `, through the proxy ${proxies}`}`)
      } catch (error) {
        code = 1
        say('FAILED', `${destination.id}: ${messageOf(error)}`)
      }
      for (const note of notes) say('note', note)
    }
    return code
  })
}
