import { createClient } from '../../client/create-client.ts'
import { messageOf } from '../../errors.ts'
import { pendingUploads } from '../../store/pending.ts'
import type { Call } from '../define.ts'
import { withUploader } from '../open.ts'
import { oneLine, type Terminal } from '../terminal.ts'
import type { flags } from './index.ts'

/** Time limit for the post-upload steps of one upload. */
const MOST_MS = 10 * 60 * 1000

/** `upload-server finalize [ID…]`: completes the given uploads, or all pending ones, here or on a running server. */
export async function run({ words, options }: Call<typeof flags>, terminal: Terminal): Promise<number> {
  const { server } = options
  if (server !== undefined) {
    if (words.length === 0)
      throw new Error('--server requires the finalizationId of each upload, which "upload" has printed.')
    const client = createClient({ ...options, server }, terminal)
    return finishEach(words, terminal, id => client.finalize(id, AbortSignal.timeout(MOST_MS)))
  }
  return withUploader(options, terminal, { use: 'change' }, async ({ uploader }) => {
    const ids = words.length > 0 ? words : (await uploader.database.read(pendingUploads)).map(({ id }) => id)
    if (ids.length === 0) terminal.note('There are no pending uploads.')
    return finishEach(ids, terminal, async id => {
      const upload = await uploader.finalizer.retry(id, undefined, AbortSignal.timeout(MOST_MS))
      if (upload === undefined) throw new Error('there is no pending upload with this id')
      return upload.files.map(file => file.url)
    })
  })
}

async function finishEach(
  ids: readonly string[],
  terminal: Terminal,
  finish: (id: string) => Promise<readonly string[]>,
): Promise<number> {
  let code = 0
  for (const id of ids) {
    try {
      terminal.print(oneLine(`finished  ${id}  ${(await finish(id)).join(' ')}`))
    } catch (error) {
      code = 1
      terminal.note(oneLine(`failed    ${id}  ${messageOf(error)}`))
    }
  }
  return code
}
