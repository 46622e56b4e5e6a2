import { createClient } from '../../client/create-client.ts'
import { messageOf } from '../../errors.ts'
import { pendingUploads } from '../../store/pending.ts'
import type { Call, OptionsOf } from '../define.ts'
import { openForCommand } from '../open.ts'
import { type CommonOptions, oneLine, type Terminal } from '../terminal.ts'
import type { flags } from './index.ts'

export const run = ({ words, options }: Call<typeof flags>, terminal: Terminal): Promise<number> =>
  options.server === undefined
    ? finishHere(words, options, terminal)
    : finishAt(options.server, words, options, terminal)

/** Time limit for the post-upload steps of one upload. */
const MOST_MS = 10 * 60 * 1000

/** `upload-server finalize [ID…]`: completes the given uploads, or all pending ones. */
async function finishHere(
  named: readonly string[],
  options: CommonOptions,
  terminal: Terminal,
): Promise<number> {
  const { mask, uploader } = await openForCommand(options, terminal, { use: 'change' })
  try {
    const ids = named.length > 0 ? named : (await uploader.database.read(pendingUploads)).map(({ id }) => id)
    if (ids.length === 0) terminal.note('There are no pending uploads.')
    return await finishEach(ids, { ...terminal, mask }, async id => {
      const upload = await uploader.finalize(id, undefined, AbortSignal.timeout(MOST_MS))
      if (upload === undefined) throw new Error('there is no pending upload with this id')
      return upload.files.map(file => file.url)
    })
  } finally {
    await uploader.close()
  }
}

/** The same on a running server, which does not disclose the ids of pending uploads. */
async function finishAt(
  server: string,
  ids: readonly string[],
  options: OptionsOf<typeof flags>,
  terminal: Terminal,
): Promise<number> {
  if (ids.length === 0)
    throw new Error('--server requires the finalizationId of each upload, which "upload" has printed.')
  const client = createClient({ ...options, server }, terminal)
  return finishEach(ids, terminal, id => client.finalize(id, AbortSignal.timeout(MOST_MS)))
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
      terminal.note(oneLine(`failed    ${id}  ${terminal.mask(messageOf(error))}`))
    }
  }
  return failures === 0 ? 0 : 1
}
