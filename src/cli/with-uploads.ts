import type { ClientOptions } from '../client/create-client.ts'
import type { Uploads } from '../client/uploads.ts'
import type { CommonOptions, Terminal } from './terminal.ts'
import type { UploadRights, UploadsHereOptions } from './upload-here.ts'

interface Options extends CommonOptions, UploadsHereOptions, Partial<Omit<ClientOptions, 'retryFor'>> {
  /** The option `--retry-max-time`: `retryFor` of the client. */
  readonly retryMaxTime?: number
}

/**
 * Runs `work` with a client of the server that `--server` names, or with the uploader of this process.
 *
 * @param who the rights of an upload in this process; a server derives them from the upload key
 * @returns what `work` returns
 */
export async function withUploads<T>(
  options: Options,
  terminal: Terminal,
  who: UploadRights,
  work: (uploads: Uploads) => Promise<T>,
): Promise<T> {
  const { server, picbed, configName, expires, retryMaxTime } = options
  // Each is loaded only if needed: the database and the configuration take half of the start-up time.
  if (server !== undefined) {
    const { createClient } = await import('../client/create-client.ts')
    const client = createClient(
      { ...options, server, ...(retryMaxTime !== undefined && { retryFor: retryMaxTime }) },
      terminal,
    )
    const where = { picbed, configName, expires }
    try {
      return await work({
        upload: (entries, signal, events) => client.upload(entries, { ...where, ...events }, signal),
        findReview: (name, signal) => client.findReview(name, where, signal),
        explainUnreachable: async () => undefined,
      })
    } finally {
      client.close()
    }
  }
  const [{ openForCommand }, { createUploadsHere }] = await Promise.all([
    import('./open.ts'),
    import('./upload-here.ts'),
  ])
  const opened = await openForCommand(options, terminal)
  try {
    return await work(createUploadsHere(options, opened, terminal, who))
  } finally {
    await opened.uploader.close()
  }
}
