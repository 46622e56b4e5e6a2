import type { IncomingMessage, ServerResponse } from 'node:http'
import { listen } from '../helpers/listen.ts'
import { type AnswerInstead, answer, type ForgeRequest, readRequest } from './forge.ts'

/** Stands before a server of a Git host, and writes down what passes. */
export interface RecordingProxy {
  readonly url: string
  readonly requests: readonly ForgeRequest[]
  /** `PUT 201`, `GET 404`… in the order they passed. Answers of `answerWith` are not among them. */
  readonly exchanges: readonly string[]
  /** Answers instead of the server as long as something comes back. */
  answerWith(answer: AnswerInstead): void
  close(): Promise<void>
}

export async function startRecordingProxy(upstream: string): Promise<RecordingProxy> {
  const requests: ForgeRequest[] = []
  const exchanges: string[] = []
  let answerWith: AnswerInstead = () => undefined

  async function handle(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const { request, bytes } = await readRequest(req)
    requests.push(request)
    const own = await answerWith(request)
    if (own && !own.isLate) return answer(res, own)
    const reply = await fetch(upstream + req.url, {
      method: request.method,
      headers: pick(req.headers),
      ...(bytes.length > 0 && { body: new Uint8Array(bytes) }),
    })
    const text = await reply.text()
    exchanges.push(`${request.method} ${reply.status}`)
    if (own) return answer(res, own)
    res.writeHead(reply.status, { 'Content-Type': 'application/json' }).end(text)
  }

  const server = await listen((req, res) => void handle(req, res).catch(() => res.destroy()))
  return {
    ...server,
    requests,
    exchanges,
    answerWith(answer) {
      answerWith = answer
    },
  }
}

function pick(headers: IncomingMessage['headers']): Record<string, string> {
  const names = ['authorization', 'accept', 'content-type', 'user-agent', 'x-github-api-version']
  return Object.fromEntries(
    names.flatMap(name => {
      const value = headers[name]
      return typeof value === 'string' ? [[name, value]] : []
    }),
  )
}
