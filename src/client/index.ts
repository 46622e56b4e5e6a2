import { createGrowingMask } from '../mask.ts'
import type { Context } from './context.ts'
import {
  type ClientOptions,
  type ClientUpload,
  createClient as createOwnClient,
  type Client as OwnClient,
} from './create-client.ts'
import { type Entry, entryOfBytes, entryOfFile, entryOfUrl } from './entries.ts'
import { isWebAddress } from './reports/format.ts'
import type { Uploaded } from './uploads.ts'

export type { ClientOptions, ClientUpload, Uploaded }

/** What to upload: the path of a file or an http(s) URL, a file under another name, or bytes. */
export type Upload =
  | string
  | { readonly path: string; readonly name?: string }
  | { readonly content: Uint8Array; readonly name: string }

/** Options of `createClient` for programs. */
export interface ProgramOptions extends ClientOptions {
  /** Environment with the outbound proxies (`HTTPS_PROXY`, `NO_PROXY`) and the variables of the CI job. Default: that of the process. */
  readonly env?: Readonly<Record<string, string | undefined>>
  /** Called with warnings, such as that the upload key is sent without encryption. Default: they are dropped. */
  readonly onWarning?: (message: string) => void
}

/** A client of one running server, for programs. */
export interface Client extends Pick<OwnClient, 'finalize' | 'close'> {
  /**
   * Uploads files with parallel requests, and retries transient failures. Yields each result when it is known, in any order:
   * `index` is the position in `uploads`. A file that can't be stored is a result with `error`, not an exception.
   *
   * @param signal aborts what is in progress; what has no result yet gets none
   */
  upload(
    uploads: Iterable<Upload>,
    options?: ClientUpload,
    signal?: AbortSignal,
  ): AsyncGenerator<Uploaded, void>
}

/**
 * Creates a client of a running upload server.
 *
 * @throws TypeError if `server` is not a URL
 */
export function createClient(options: ProgramOptions): Client {
  const { env = process.env, onWarning = () => {} } = options
  const context: Context = {
    ...createGrowingMask(),
    env,
    platform: process.platform,
    cwd: process.cwd(),
    get stdin() {
      return process.stdin
    },
    note: onWarning,
    maskInJobLog() {},
  }
  const client = createOwnClient(options, context)
  return {
    async *upload(uploads, upload = {}, signal = new AbortController().signal) {
      const entries = await Promise.all([...uploads].map(one => toEntry(one, context)))
      yield* client.upload(entries, upload, signal)
    },
    finalize: client.finalize,
    close: client.close,
  }
}

/** The entry of something that a program wants to upload. A folder or a missing file has a fault. */
export async function toEntry(upload: Upload, context: Pick<Context, 'cwd' | 'platform'>): Promise<Entry> {
  if (typeof upload === 'object' && 'content' in upload) return entryOfBytes(upload.name, upload.content)
  const { path, name } = typeof upload === 'string' ? { path: upload, name: undefined } : upload
  const entry = isWebAddress(path) ? entryOfUrl(path) : await entryOfFile(path, context)
  return name === undefined ? entry : { ...entry, fileName: name }
}
