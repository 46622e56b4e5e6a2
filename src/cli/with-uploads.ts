import type { ClientOptions } from '../client/create-client.ts'
import type { Uploads } from '../client/uploads.ts'
import { idOf } from '../uploader/destinations.ts'
import type { CommonOptions, Terminal } from './terminal.ts'
import type { UploadRights, UploadsHereOptions } from './upload-here.ts'

interface Options extends CommonOptions, UploadsHereOptions, Partial<Omit<ClientOptions, 'retryFor'>> {
  /** The option `--retry-max-time`: `retryFor` of the client. */
  readonly retryMaxTime?: number
}

/** Uploader: a client of the server that `--server` names, or the uploader of this process. */
export interface OpenedUploads {
  /** Uploads to one destination. @throws UploadError if this process does not have it */
  to(where: UploadsHereOptions): Uploads
  /** The destinations of this process. Undefined: only the server knows its own. */
  readonly destinations: readonly { readonly id: string; readonly isDefault: boolean }[] | undefined
  close(): Promise<void>
}

/** @param who the rights of an upload in this process; a server derives them from the upload key */
export async function openUploads(
  options: Options,
  terminal: Terminal,
  who: UploadRights,
): Promise<OpenedUploads> {
  const { server, retryMaxTime } = options
  // Each is loaded only if needed: the database and the configuration take half of the start-up time.
  if (server !== undefined) {
    const { createClient } = await import('../client/create-client.ts')
    const retries = retryMaxTime === undefined ? {} : { retryFor: retryMaxTime }
    const client = createClient({ ...options, server, ...retries }, terminal)
    return {
      to: ({ picbed, configName, expires }) => ({
        upload: (entries, signal, events) =>
          client.upload(entries, { picbed, configName, expires, ...events }, signal),
        find: (files, signal) => client.find(files, { picbed, configName, expires }, signal),
        explainUnreachable: async () => undefined,
      }),
      destinations: undefined,
      close: async () => client.close(),
    }
  }
  const { openForCommand } = await import('./open.ts')
  const { createUploadsHere, findDefault } = await import('./upload-here.ts')
  const opened = await openForCommand(options, terminal)
  const { uploader } = opened
  const first = findDefault(uploader)
  return {
    to: where => createUploadsHere(where, opened, terminal, who),
    destinations: uploader.destinations.map(idOf).map(id => ({ id, isDefault: id === first })),
    close: () => uploader.close(),
  }
}

/** Runs `work` with uploads to the destination that the options name. @returns what `work` returns */
export async function withUploads<T>(
  options: Options,
  terminal: Terminal,
  who: UploadRights,
  work: (uploads: Uploads) => Promise<T>,
): Promise<T> {
  const opened = await openUploads(options, terminal, who)
  try {
    return await work(opened.to(options))
  } finally {
    await opened.close()
  }
}
