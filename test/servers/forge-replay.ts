import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { listen } from '../helpers/listen.ts'
import {
  type AnswerInstead,
  answer,
  type ForgeAnswer,
  type ForgeRequest,
  findFault,
  readRequest,
} from './forge.ts'
import {
  DIALECTS,
  type ForgeFile,
  type ForgeKind,
  type ForgeState,
  type Operation,
} from './forge-dialects.ts'

/** A server with the API of a forge, after its documentation: there is none to be had for tests. */
export interface ForgeReplay extends ForgeState {
  /** Where its API begins. */
  readonly apiUrl: string
  readonly token: string
  /** Bodies of the commits, oldest first. */
  readonly commits: readonly Readonly<Record<string, unknown>>[]
  readonly requests: readonly ForgeRequest[]
  /** What no documented request looks like, as sentences. */
  readonly violations: readonly string[]
  /** Answers instead of the forge as long as something comes back. */
  answerWith(answer: AnswerInstead): void
  /** A commit by somebody else. */
  commit(key: string, bytes: Buffer | undefined): void
  close(): Promise<void>
}

const REPO = 'octo/img'
const BRANCH = 'main'

export async function startForgeReplay(
  kind: ForgeKind,
  token = 'token-of-octo-0123456789',
): Promise<ForgeReplay> {
  const dialect = DIALECTS[kind]
  const schemas = readSchemas(kind)
  const files = new Map<string, ForgeFile>()
  const commits: Record<string, unknown>[] = []
  const requests: ForgeRequest[] = []
  const violations: string[] = []
  let answerWith: AnswerInstead = () => undefined
  let changes = 0

  function change(key: string, bytes: Buffer | undefined): void {
    if (bytes === undefined) return void files.delete(key)
    const sha = createHash('sha1').update(`blob ${bytes.length}\0`).update(bytes).digest('hex')
    const commit = createHash('sha1').update(`${++changes} ${sha}`).digest('hex')
    files.set(key, { bytes, sha, commit })
  }

  function commitOf(
    operation: Operation & { kind: 'create' | 'update' | 'remove' },
    body: Record<string, unknown>,
  ) {
    const refused = dialect.refuse(operation, body, state)
    if (refused) return refused
    commits.push(body)
    const { content } = body
    change(operation.key, typeof content === 'string' ? Buffer.from(content, 'base64') : undefined)
    return dialect.committed(operation, state)
  }

  function reply(request: ForgeRequest): ForgeAnswer {
    const visited = request.method === 'GET' ? dialect.visit(request.path, state) : undefined
    if (visited !== undefined) {
      const file = files.get(visited)
      return file ? { status: 200, body: file.bytes } : { status: 404, body: 'no such page' }
    }
    const operation = dialect.read(request, state)
    const at = `${request.method} ${request.path}`
    if (operation === undefined) {
      violations.push(`${at} is no operation of the API`)
      return { status: 404, body: { message: 'Not Found' } }
    }
    if (request.path.includes(token) || [...request.query.values()].includes(token))
      violations.push(`${at} shows the token in its address`)
    if (!request.headers['user-agent']) violations.push(`${at} names no user agent`)
    if (!dialect.isAuthorized(request, token)) return dialect.unauthorized
    if (operation.kind === 'repo' || operation.kind === 'branch' || operation.kind === 'lookUp')
      return dialect.show(operation, state)
    const { body } = request
    const fault = findFault(schemas[operation.kind], body)
    if (fault !== undefined) {
      violations.push(`${at}: ${fault}`)
      return { status: 400, body: { message: fault } }
    }
    return commitOf(operation, body as Record<string, unknown>)
  }

  async function handle(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const { request } = await readRequest(req)
    requests.push(request)
    const own = await answerWith(request)
    if (own && !own.isLate) return answer(res, own)
    const given = reply(request)
    answer(res, own ?? given)
  }

  const server = await listen((req, res) => void handle(req, res).catch(() => res.destroy()))
  const state: ForgeState = { url: server.url, repo: REPO, branch: BRANCH, files }
  return {
    ...state,
    ...server,
    apiUrl: server.url + dialect.api,
    token,
    commits,
    requests,
    violations,
    answerWith(answer) {
      answerWith = answer
    },
    commit: change,
  }
}

function readSchemas(kind: ForgeKind): Record<'create' | 'update' | 'remove', object> {
  return JSON.parse(readFileSync(new URL(`../fixtures/forges/${kind}.json`, import.meta.url), 'utf8'))
}
