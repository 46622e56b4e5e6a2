import type { LoadedConfig } from '../../config/load.ts'
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
  const { config, mask, uploader } = await openForCommand(options, terminal, {
    warn: note => notes.push(note),
  })
  try {
    let failures = 0
    for (const destination of select(uploader.destinations, id, config)) {
      notes.length = 0 // The server reports the notes of opening when it starts.
      try {
        await prepare?.(destination)
        const done = await tryOut(destination, uploader, config)
        terminal.print(oneLine(`ok      ${idOf(destination)}: ${done}${describeProxies(destination)}`))
      } catch (error) {
        failures++
        terminal.print(oneLine(`FAILED  ${idOf(destination)}: ${mask(messageOf(error))}`))
      }
      for (const note of notes) terminal.print(oneLine(`note    ${mask(note)}`))
    }
    return failures === 0 ? 0 : 1
  } finally {
    await uploader.close()
  }
}

function select(
  all: readonly Destination[],
  id: string | undefined,
  { settings, leftOut }: LoadedConfig,
): readonly Destination[] {
  if (id === undefined) return all
  const { type, name } = splitId(id)
  return [chooseDestination(all, settings.default, { picbed: type, configName: name }, undefined, leftOut)]
}

function describeProxies({ outgoing }: Destination): string {
  const used = [...(outgoing?.used ?? [])]
  return used.length === 0 ? '' : `, through the proxy ${used.join(' and ')}`
}
