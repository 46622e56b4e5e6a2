import { fill, words } from './words.ts'

/** What became of one upload. */
export type Ending =
  | { readonly kind: 'stored'; readonly url: string; readonly type: string }
  | { readonly kind: 'cancelled' }
  | { readonly kind: 'pending'; readonly finalizationId: string; readonly reason: string }
  | {
      readonly kind: 'failed'
      readonly title: string
      /** The server's words. */
      readonly reason: string
      /** Code and request id, or our words. */
      readonly detail: string
      readonly code: string
    }

export interface Sending {
  /** What follows `/upload`: empty or from the question mark on. */
  readonly query: string
  readonly body?: FormData | string
  readonly headers: Readonly<Record<string, string>>
  /** Hears how many bytes of the body are gone, of how many. */
  onProgress?(sent: number, all: number): void
  readonly signal?: AbortSignal
}

/** This file lies in /page/<version>/ of the server, whatever path that is below. */
const ROOT = new URL('../../', import.meta.url)
export const ROOT_PATH = ROOT.pathname
export const addressOf = (path: string) => new URL(path, ROOT)

/** Sends one upload and reads its answer. By XMLHttpRequest, since `fetch` tells nothing of what it has sent. */
export function send({ query, body, headers, onProgress, signal }: Sending): Promise<Ending> {
  return new Promise(resolve => {
    const request = new XMLHttpRequest()
    request.open('POST', addressOf(`upload${query}`))
    for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value)
    request.upload.onprogress = event => {
      if (event.lengthComputable && event.total > 0) onProgress?.(event.loaded, event.total)
    }
    request.onload = () => resolve(readAnswer(request.status, request.responseText))
    request.onerror = () => resolve(fail(words.unreachable, '', words.unreachableHelp))
    request.onabort = () => resolve({ kind: 'cancelled' })
    signal?.addEventListener('abort', () => request.abort())
    request.send(body ?? null)
  })
}

function fail(title: string, reason = '', detail = '', code = ''): Ending {
  return { kind: 'failed', title, reason, detail, code }
}

interface Failure {
  code: string
  message: string
}

interface Answer extends Partial<Failure> {
  success: boolean
  result?: string[]
  items?: { contentType: string }[]
  errors?: Failure[]
  stage?: string
  finalizationId?: string
  requestId?: string
}

/** The status says nothing more than the body, and less when the server is told to answer 200 always. */
function readAnswer(status: number, text: string): Ending {
  const answer = parse(text)
  if (typeof answer?.success !== 'boolean')
    return fail(words.unreadable, '', fill(words.unreadableHelp, { status }))
  const [url] = answer.result ?? []
  if (answer.success && url !== undefined)
    return { kind: 'stored', url, type: answer.items?.[0]?.contentType ?? '' }
  if (answer.finalizationId !== undefined)
    return { kind: 'pending', finalizationId: answer.finalizationId, reason: answer.message ?? '' }
  const { code = '', message = '' } = answer.errors?.[0] ?? answer
  const id = answer.requestId === undefined ? '' : ` · ${fill(words.requestId, { id: answer.requestId })}`
  // What the server says of a key is for programs.
  if (code === 'unauthorized') return fail(words.failures[code] ?? '', '', words.keyHelp, code)
  return fail(words.failures[code] ?? words.unreadable, message, code + id, code)
}

function parse(text: string): Answer | undefined {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
