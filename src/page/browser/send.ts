import { fill, titleOf, words } from './words.ts'

/** The result of one upload. */
export type Outcome =
  | {
      readonly kind: 'stored'
      readonly url: string
      readonly type: string
      /** Bytes stored; image options can make them fewer than the bytes sent. */
      readonly size: number | undefined
      /** When the file expires, as an RFC 3339 timestamp. Undefined: never. */
      readonly expiresAt: string | undefined
    }
  | { readonly kind: 'cancelled' }
  | { readonly kind: 'pending'; readonly finalizationId: string; readonly reason: string }
  | {
      readonly kind: 'failed'
      readonly title: string
      /** The server's message. */
      readonly reason: string
      /** The error code with the request ID, or a hint of this page. */
      readonly detail: string
      readonly code: string
      /** Whether the server could not be reached or is shutting down, so that the upload can be retried later. */
      readonly isOffline: boolean
    }

export interface UploadRequest {
  /** Query of the request: empty, or with its question mark. */
  readonly query: string
  readonly body?: FormData | string
  readonly headers: Readonly<Record<string, string>>
  /** Called with the bytes of the body sent so far, and their total. */
  onProgress?(sent: number, all: number): void
  readonly signal?: AbortSignal
}

/** The server's root. This script is served at /page/<version>/ below it, also behind a reverse proxy with a path prefix. */
const ROOT = new URL('../../', import.meta.url)
export const ROOT_PATH = ROOT.pathname
export const urlOf = (path: string) => new URL(path, ROOT)

/** Sends one upload and reads the response. It uses XMLHttpRequest because `fetch` reports no upload progress. */
export function send({ query, body, headers, onProgress, signal }: UploadRequest): Promise<Outcome> {
  return new Promise(resolve => {
    const request = new XMLHttpRequest()
    request.open('POST', urlOf(`upload${query}`))
    for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value)
    request.upload.onprogress = event => {
      if (event.lengthComputable && event.total > 0) onProgress?.(event.loaded, event.total)
    }
    request.onload = () => resolve(readResponse(request.status, request.responseText))
    request.onerror = () =>
      resolve({ ...fail(words.unreachable, '', words.unreachableHelp), isOffline: true })
    request.onabort = () => resolve({ kind: 'cancelled' })
    signal?.addEventListener('abort', () => request.abort())
    request.send(body ?? null)
  })
}

function fail(title: string, reason = '', detail = '', code = ''): Outcome & { kind: 'failed' } {
  return { kind: 'failed', title, reason, detail, code, isOffline: code === 'shutting_down' }
}

interface Failure {
  code: string
  message: string
}

interface ResponseBody extends Partial<Failure> {
  success: boolean
  result?: string[]
  items?: { contentType: string; size: number; expiresAt?: string }[]
  errors?: Failure[]
  stage?: string
  finalizationId?: string
  requestId?: string
}

/** Reads the outcome from the body, not the status, because `compat.alwaysOk` makes every status 200. */
function readResponse(status: number, text: string): Outcome {
  const response = parse(text)
  if (typeof response?.success !== 'boolean')
    return {
      ...fail(words.foreign, '', fill(words.foreignHelp, { status })),
      isOffline: [502, 503, 504].includes(status),
    }
  const [url] = response.result ?? []
  const [item] = response.items ?? []
  if (response.success && url !== undefined)
    return {
      kind: 'stored',
      url,
      type: item?.contentType ?? '',
      size: item?.size,
      expiresAt: item?.expiresAt,
    }
  if (response.finalizationId !== undefined)
    return { kind: 'pending', finalizationId: response.finalizationId, reason: response.message ?? '' }
  const { code = '', message = '' } = response.errors?.[0] ?? response
  const id = response.requestId === undefined ? '' : ` · ${fill(words.requestId, { id: response.requestId })}`
  // The server's message about keys is written for programs.
  if (code === 'unauthorized') return fail(titleOf(code) ?? '', '', words.keyHelp, code)
  return fail(titleOf(code) ?? words.foreign, message, code + id, code)
}

function parse(text: string): ResponseBody | undefined {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
