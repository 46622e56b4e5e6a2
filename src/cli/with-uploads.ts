import type { ClientOptions } from '../client/create-client.ts'
import type { Uploads } from '../client/uploads.ts'
import type { ConfigOption } from './open.ts'
import type { Terminal } from './terminal.ts'
import type { Place, UploadRights } from './upload-here.ts'

interface Options extends ConfigOption, Place, Partial<Omit<ClientOptions, 'retryFor'>> {
  /** The option `--retry-max-time`: `retryFor` of the client. */
  readonly retryMaxTime?: number
}

/** Makes uploads to a destination: with a client of the server that `--server` names, or with the uploader of this process. */
export interface Destinations {
  /** @throws UploadError if this process does not have the destination */
  to(place: Place): Uploads
  /** Those of this process. Undefined: only the server knows its own. */
  readonly list?: readonly { readonly id: string; readonly isDefault: boolean }[]
}

/**
 * Runs `work` with the destinations that the options name.
 *
 * @param who the rights of an upload in this process; a server derives them from the upload key
 * @returns what `work` returns
 */
export async function withDestinations<T>(
  options: Options,
  terminal: Terminal,
  who: UploadRights,
  work: (destinations: Destinations) => Promise<T>,
): Promise<T> {
  const { server, retryMaxTime } = options
  // Each is loaded only if needed: the database and the configuration take half of the start-up time.
  if (server === undefined) {
    const [{ withUploader }, { createUploadsHere, findDefault }] = await Promise.all([
      import('./open.ts'),
      import('./upload-here.ts'),
    ])
    return withUploader(options, terminal, {}, opened => {
      const standard = findDefault(opened)
      const ids = opened.uploader.destinations.map(({ id }) => id)
      return work({
        to: place => createUploadsHere(place, opened, terminal, who),
        list: ids.map(id => ({ id, isDefault: id === standard })),
      })
    })
  }
  const { createClient } = await import('../client/create-client.ts')
  const retries = retryMaxTime === undefined ? {} : { retryFor: retryMaxTime }
  const client = createClient({ ...options, server, ...retries }, terminal)
  const to = ({ picbed, configName, expires }: Place): Uploads => ({
    upload: (entries, signal, events) =>
      client.upload(entries, { picbed, configName, expires, ...events }, signal),
    find: (files, signal) => client.find(files, { picbed, configName, expires }, signal),
    explainUnreachable: async () => undefined,
  })
  try {
    return await work({ to })
  } finally {
    client.close()
  }
}

/** The same with uploads to the one destination that the options name. */
export const withUploads = <T>(
  options: Options,
  terminal: Terminal,
  who: UploadRights,
  work: (uploads: Uploads) => Promise<T>,
): Promise<T> => withDestinations(options, terminal, who, ({ to }) => work(to(options)))
