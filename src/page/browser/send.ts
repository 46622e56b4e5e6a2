import { fill, titleOf, urlOf, words } from './page.ts'

/** The result of one upload. */
export type Outcome =
  | {
      readonly kind: 'stored'
      readonly url: string
      readonly item: { readonly contentType?: string; readonly size?: number; readonly expiresAt?: string }
    }
  | { readonly kind: 'cancelled' }
  | { readonly kind: 'pending'; readonly finalizationId: string; readonly reason: string }
  | {
      readonly kind: 'failed'
      readonly title: string
      /** The server's message. */
      readonly reason?: string
      /** The error code with the request ID, or a hint of this page. */
      readonly detail?: string
      readonly code?: string
      /** Whether the server could not be reached or is shutting down, so that the upload can be retried later. */
      readonly isOffline?: boolean
    }

export interface UploadRequest {
  readonly query: URLSearchParams
  readonly body?: FormData | string
  readonly headers: Readonly<Record<string, string>>
  /** Called with the part of the body sent so far, from 0 to 1. */
  onProgress?(sent: number): void
  readonly signal?: AbortSignal
}

/** Sends one upload and reads the response. It uses XMLHttpRequest because `fetch` reports no upload progress. */
export function send({ query, body, headers, onProgress, signal }: UploadRequest): Promise<Outcome> {
  return new Promise(resolve => {
    const request = new XMLHttpRequest()
    request.open('POST', urlOf(`upload?${query}`))
    for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value)
    request.upload.onprogress = ({ loaded, total }) => total > 0 && onProgress?.(loaded / total)
    request.onload = () => resolve(readResponse(request.status, request.responseText))
    request.onerror = () =>
      resolve({
        kind: 'failed',
        title: words.state.unreachable,
        detail: words.state.unreachableHelp,
        isOffline: true,
      })
    request.onabort = () => resolve({ kind: 'cancelled' })
    signal?.addEventListener('abort', () => request.abort())
    request.send(body ?? null)
  })
}

interface Failure {
  readonly code: string
  readonly message: string
}

interface ResponseBody extends Partial<Failure> {
  readonly success?: boolean
  readonly result?: readonly string[]
  readonly items?: readonly (Outcome & { kind: 'stored' })['item'][]
  readonly errors?: readonly Failure[]
  readonly finalizationId?: string
  readonly requestId?: string
}

/** Reads the outcome from the body, not the status, because `compat.alwaysOk` makes every status 200. */
function readResponse(status: number, text: string): Outcome {
  const response = parse(text)
  if (typeof response?.success !== 'boolean')
    return {
      kind: 'failed',
      title: words.state.foreign,
      detail: fill(words.state.foreignHelp, { status }),
      isOffline: [502, 503, 504].includes(status),
    }
  const [url] = response.result ?? []
  if (response.success && url !== undefined) return { kind: 'stored', url, item: response.items?.[0] ?? {} }
  if (response.finalizationId !== undefined)
    return { kind: 'pending', finalizationId: response.finalizationId, reason: response.message ?? '' }
  const { code = '', message = '' } = response.errors?.[0] ?? response
  const title = titleOf(code)
  // The server's message about keys is written for programs.
  if (code === 'unauthorized') return { kind: 'failed', title, detail: words.state.keyHelp, code }
  const id = response.requestId && fill(words.state.requestId, { id: response.requestId })
  const detail = [code, id].filter(Boolean).join(' · ')
  return { kind: 'failed', title, reason: message, detail, code, isOffline: code === 'shutting_down' }
}

function parse(text: string): ResponseBody | undefined {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
