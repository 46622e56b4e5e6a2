import { readFileSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { type AnswerInstead, answer, type ForgeRequest, findFault, listen, readRequest } from './forge.ts'

/** Stands before a server with GitHub's API and holds what passes against GitHub's published schemas. */
export interface Referee {
  readonly url: string
  readonly requests: readonly ForgeRequest[]
  /** What did not fit the schemas, as sentences. */
  readonly violations: readonly string[]
  /** `PUT 201`, `GET 404`… in the order they passed. Answers of `answerWith` are not among them. */
  readonly exchanges: readonly string[]
  /** Answers instead of the server as long as something comes back. */
  answerWith(answer: AnswerInstead): void
  close(): Promise<void>
}

interface Operation {
  readonly query: readonly string[]
  readonly requestBody?: Readonly<Record<string, object>>
  readonly responses: Readonly<Record<string, Readonly<Record<string, object>>>>
}

const cutOut = JSON.parse(
  readFileSync(new URL('../fixtures/github/openapi.json', import.meta.url), 'utf8'),
  toJsonSchema,
) as {
  paths: Record<string, Record<string, Operation>>
  components: { schemas: Record<string, { required?: string[] }> }
}

// emulate leaves out some members of a repository and most of a branch, which we do not look at.
const { 'full-repository': repository, 'branch-with-protection': branch, commit } = cutOut.components.schemas
for (const schema of [branch, commit]) delete schema?.required
if (repository)
  repository.required = repository.required?.filter(name => !/^(?:network|subscribers)_count$/.test(name))

/** OpenAPI 3.0 has a keyword of its own for null, and GitHub says `oneOf` where several fit. */
function toJsonSchema(_name: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  const { nullable, oneOf, ...rest } = value as Record<string, unknown>
  const schema = oneOf === undefined ? rest : { ...rest, anyOf: oneOf }
  return nullable === true ? { anyOf: [schema, { type: 'null' }] } : schema
}

export async function startReferee(upstream: string): Promise<Referee> {
  const requests: ForgeRequest[] = []
  const violations: string[] = []
  const exchanges: string[] = []
  let answerWith: AnswerInstead = () => undefined

  async function handle(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const { request, bytes } = await readRequest(req)
    requests.push(request)
    const operation = findOperation(request)
    violations.push(...judgeRequest(request, operation))
    const own = await answerWith(request)
    if (own && !own.isLate) return answer(res, own)
    const reply = await fetch(upstream + req.url, {
      method: request.method,
      headers: pick(req.headers),
      ...(bytes.length > 0 && { body: new Uint8Array(bytes) }),
    })
    const text = await reply.text()
    exchanges.push(`${request.method} ${reply.status}`)
    violations.push(...judgeAnswer(request, operation, reply.status, text))
    if (own) return answer(res, own)
    res.writeHead(reply.status, { 'Content-Type': 'application/json' }).end(text)
  }

  const server = await listen((req, res) => {
    handle(req, res).catch((error: unknown) => {
      if (!req.destroyed || req.complete) violations.push(`${req.method} ${req.url}: ${error}`)
      res.destroy()
    })
  })
  return {
    ...server,
    requests,
    violations,
    exchanges,
    answerWith(answer) {
      answerWith = answer
    },
  }
}

/** The schema with its components, that it refers to. */
function withNames(schema: object): object {
  return { ...schema, components: cutOut.components }
}

/** GitHub's `{path}` may have slashes, raw or encoded; the others have none. */
function findOperation({ method, path }: ForgeRequest): Operation | undefined {
  const template = Object.keys(cutOut.paths).find(one => {
    const pattern = one.replace(/\{(\w+)\}/g, (_, name: string) => (name === 'path' ? '.+' : '[^/]+'))
    return new RegExp(`^${pattern}$`).test(path)
  })
  return template === undefined ? undefined : cutOut.paths[template]?.[method.toLowerCase()]
}

function judgeRequest(request: ForgeRequest, operation: Operation | undefined): string[] {
  const { method, path, query, headers, body } = request
  const at = `${method} ${path}`
  if (!operation) return [`${at} is no operation of the API`]
  const faults: string[] = []
  for (const name of query.keys()) {
    if (!operation.query.includes(name)) faults.push(`${at} has no query parameter "${name}"`)
  }
  if (!headers['user-agent']) faults.push(`${at} names no user agent`)
  if (!/^Bearer \S+$/.test(headers.authorization ?? '')) faults.push(`${at} carries no token`)
  const schema = operation.requestBody?.['application/json']
  if (schema === undefined && body !== undefined) faults.push(`${at} takes no body`)
  if (schema !== undefined) {
    if (headers['content-type'] !== 'application/json')
      faults.push(`${at} has a body that is not called JSON`)
    const fault = findFault({ ...withNames(schema), additionalProperties: false }, body)
    if (fault) faults.push(`${at}: ${fault}`)
  }
  return faults
}

function judgeAnswer(
  { method, path, headers }: ForgeRequest,
  operation: Operation | undefined,
  status: number,
  text: string,
): string[] {
  const at = `the answer ${status} to ${method} ${path}`
  const types = operation?.responses[String(status)]
  if (types === undefined) return [`${at} is none that the API gives`]
  const accepted = headers.accept?.replace('+json', '') ?? ''
  const schema = types[accepted] ?? types['application/json']
  const fault = schema && findFault(withNames(schema), JSON.parse(text))
  return fault ? [`${at}: ${fault}`] : []
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
