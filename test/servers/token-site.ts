import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { listen } from '../helpers/listen.ts'

/** The bearer token of the job, with which it asks for tokens. */
export const REQUEST_TOKEN = 'request-token-of-the-job-0123456789'

export interface TokenSiteOptions {
  /** How long tokens live, seconds. Default: 300. */
  lifeS?: number
  /** Seconds that the issuer's clock is ahead of this machine's. */
  aheadS?: number
  /** Answers in place of the endpoint for tokens. Returns whether it did. */
  endpoint?: (request: IncomingMessage, response: ServerResponse, attempt: number) => boolean
  /** Number of uploads after which the first tokens are refused, as if the keys were changed. */
  revokeAfter?: number
}

const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')

/** A token as CI providers sign them, but with a signature of nobody. */
export function makeToken(claims: Record<string, unknown>): string {
  const signature = Buffer.from(`signature ${Math.random()}`).toString('base64url')
  return `${encode({ alg: 'RS256', typ: 'JWT' })}.${encode(claims)}.${signature}`
}

/** One server that is two: what GitHub's runner offers a job at `/token`, and an upload server that wants its tokens. */
export async function startTokenSite({
  lifeS = 300,
  aheadS = 0,
  endpoint,
  revokeAfter = Infinity,
}: TokenSiteOptions = {}) {
  const valid = new Map<string, { audience: string; endsAt: number }>()
  /** Every token that was issued. */
  const issued: string[] = []
  /** Requests for tokens. */
  const asked: string[] = []
  /** For each upload: its status and its headers. */
  const uploads: { status: number; headers: IncomingMessage['headers'] }[] = []
  let isRevoked = false

  function issue(audience: string): string {
    const iat = Date.now() / 1000 + aheadS
    const claims = { iss: 'https://issuer.example', aud: audience, iat, exp: iat + lifeS }
    const token = makeToken(claims)
    valid.set(token, { audience, endsAt: Date.now() + lifeS * 1000 })
    issued.push(token)
    return token
  }

  function answerToken(request: IncomingMessage, response: ServerResponse): void {
    const { searchParams } = new URL(request.url ?? '', 'http://x')
    asked.push(request.url ?? '')
    if (endpoint?.(request, response, asked.length)) return
    const isRight = request.headers.authorization === `Bearer ${REQUEST_TOKEN}`
    const audience = searchParams.get('audience')
    if (isRight && audience !== null && searchParams.get('api-version') === '2.0')
      response.end(JSON.stringify({ count: 1, value: issue(audience) }))
    else response.writeHead(400).end(JSON.stringify({ message: 'this is not how a job asks' }))
  }

  async function answerUpload(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { authorization = '', ...headers } = request.headers
    const sent = String(headers['x-upload-key'] ?? authorization.replace('Bearer ', ''))
    if (uploads.length >= revokeAfter && !isRevoked) {
      isRevoked = true
      valid.clear()
    }
    const token = valid.get(sent)
    const isRight = token !== undefined && token.audience === url && Date.now() < token.endsAt
    const names = (await text(request)).match(/filename="/g) ?? ['']
    const status = isRight ? 200 : 401
    uploads.push({ status, headers: request.headers })
    const body = isRight
      ? { success: true, result: names.map((_, index) => `https://img.example/${uploads.length}-${index}`) }
      : { success: false, code: 'unauthorized', message: `The token is wrong: ${sent}` }
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  }

  const server = createServer((request, response) => {
    if (request.url?.startsWith('/token')) answerToken(request, response)
    else void answerUpload(request, response)
  })
  const { url, close } = await listen(server)
  /** The variables of a job of GitHub. */
  const job: Record<string, string> = {
    GITHUB_ACTIONS: 'true',
    ACTIONS_ID_TOKEN_REQUEST_URL: `${url}/token?api-version=2.0`,
    ACTIONS_ID_TOKEN_REQUEST_TOKEN: REQUEST_TOKEN,
  }
  return { url, job, issued, asked, uploads, issue, close }
}
