import { UploadError } from '../../../errors.ts'
import { retry } from '../../../flow/retry.ts'
import { createHttpClient, type HttpReply, type HttpRequest } from '../../../http/client.ts'
import type { ProviderDeps, Target, UploadObject } from '../../contract.ts'
import { joinUrl } from '../public-url.ts'
import { createCommitBody, isBlobOf } from './body.ts'
import { explainReply, isStale, lacksBranch, noForge, type Remote } from './failure.ts'
import type { ContentsOptions } from './options.ts'

/** Look-ups and commits are answered with the content of the file by some forges: up to 10 MiB in base64 by Gitea. */
const MAX_REPLY_BYTES = 16 * 1024 * 1024

export type Members = Readonly<Record<string, unknown>>

/** A file as it is in the branch. */
export interface Found {
  /** Git's name for its bytes. */
  readonly sha: string
  /** Bytes. */
  readonly size: number
  /** The last commit that changed it, where the forge says so. */
  readonly commit?: string | undefined
}

/** What sets the API of one forge apart from the others. */
export interface Forge {
  /** Of every request, with the token. */
  readonly headers: Readonly<Record<string, string>>
  readonly repoUrl: string
  readonly branchUrl: string
  fileUrl(key: string): string
  readonly lookUp: 'GET' | 'HEAD'
  /** Reads the answer to a look-up; undefined when it says that nothing is there, "unknown" when it is no forge's. */
  read(reply: HttpReply): Found | undefined | 'unknown'
  /** Method that makes a file; PUT changes one. */
  readonly create: 'PUT' | 'POST'
  /** Members of a commit beside its content. `found` is what it replaces or removes. */
  commit(message: string, found: Found | undefined): Record<string, unknown>
  /**
   * Whether the answer to a commit says that the file was stored.
   *
   * @param isContent whether a name of git's is that of the bytes that were sent
   */
  confirms(
    answer: Members,
    key: string,
    isContent: (sha: string) => Promise<boolean>,
  ): boolean | Promise<boolean>
  /** Whether the answer to a removal says that the file was removed; without it the file is looked for. */
  confirmsRemoval?(answer: Members): boolean
  /** Members that go with the content. */
  readonly content?: Readonly<Record<string, string>>
  /** Removals carry their members in the query instead of a body. */
  readonly removesByQuery?: boolean
  /** Address of the branch for visitors, without a slash at the end. */
  readonly publicUrl: string
}

/** One destination at a forge. */
interface Repository {
  readonly forge: Forge
  readonly options: ContentsOptions
  readonly remote: Remote
  /** Sends a request. Failures that pass by themselves are thrown, all other answers are given back. */
  send(request: HttpRequest, signal: AbortSignal): Promise<HttpReply>
}

/** Stores files as commits through the API of a forge, one commit for each. */
export function createContentsTarget(forge: Forge, options: ContentsOptions, deps: ProviderDeps): Target {
  const { repo, branch, token, maxBytes, urlPrefix } = options
  const client = createHttpClient(options, deps)
  const repository: Repository = {
    forge,
    options,
    remote: { host: new URL(forge.repoUrl).host, repo, branch, token },
    send({ headers, ...request }, signal) {
      const accept = (status: number) => status < 500 && status !== 408 && status !== 425
      return client.send({ ...request, headers: { ...forge.headers, ...headers }, accept }, signal)
    },
  }
  return {
    serial: true,
    async put(object, signal) {
      if (object.size > maxBytes) throw tooLarge(object, repository.remote, maxBytes)
      await store(repository, object, signal)
      return { url: joinUrl(urlPrefix ?? forge.publicUrl, object.key) }
    },
    remove: (key, signal) => remove(repository, key, signal),
    exists: async (key, signal) => (await lookUp(repository, key, signal)) !== undefined,
    check: signal => check(repository, signal),
    close: async () => client.close(),
  }
}

async function lookUp(
  { forge, remote, send }: Repository,
  key: string,
  signal: AbortSignal,
): Promise<Found | undefined> {
  const url = `${forge.fileUrl(key)}?ref=${encodeURIComponent(remote.branch)}`
  const reply = await send({ method: forge.lookUp, url, maxReplyBytes: MAX_REPLY_BYTES }, signal)
  if (reply.status === 404 && !lacksBranch(reply)) return undefined
  if (reply.status === 409 && /empty/i.test(reply.text)) return undefined // no commit in the repository yet
  if (reply.status !== 200) throw explainReply(reply, `looking for "${key}"`, remote)
  const found = forge.read(reply)
  if (found === 'unknown') throw noForge(reply, `looking for "${key}"`, remote)
  return found
}

async function store(repository: Repository, object: UploadObject, signal: AbortSignal): Promise<void> {
  const { key, size } = object
  const reply = await change(repository, key, `committing "${key}"`, signal, async found => {
    if (found?.size === size && (await isBlobOf(object, found.sha, signal))) return undefined
    return commit(repository, object, found, signal)
  })
  if (reply) await confirm(repository, object, reply, signal)
}

/**
 * Looks a file up and changes it; once more, at once, when another commit came between the two.
 *
 * @param send gives undefined when nothing is to be changed
 */
function change(
  repository: Repository,
  key: string,
  doing: string,
  signal: AbortSignal,
  send: (found: Found | undefined) => Promise<HttpReply | undefined>,
): Promise<HttpReply | undefined> {
  let wasStale = false
  const attempt = async () => {
    wasStale = false
    const found = await lookUp(repository, key, signal)
    const reply = await send(found)
    if (reply === undefined || reply.status < 300) return reply
    wasStale = isStale(reply, found !== undefined)
    throw explainReply(reply, doing, repository.remote)
  }
  return retry(attempt, { attempts: 2, passing: () => wasStale && { retryAfterS: 0 } }, signal)
}

/** A page that asks for a login is answered with 200 as well. */
async function confirm(
  { forge, remote }: Repository,
  object: UploadObject,
  reply: HttpReply,
  signal: AbortSignal,
): Promise<void> {
  const isContent = (sha: string) => isBlobOf(object, sha, signal)
  if (await forge.confirms(readMembers(reply), object.key, isContent)) return
  throw noForge(reply, `committing "${object.key}"`, remote)
}

function commit(
  { forge, options, send }: Repository,
  object: UploadObject,
  found: Found | undefined,
  signal: AbortSignal,
): Promise<HttpReply> {
  const members = { ...forge.commit(messageOf(options.commitMessage, object.key), found), ...forge.content }
  const { body, length } = createCommitBody(object, members)
  const headers = { 'Content-Type': 'application/json', 'Content-Length': String(length) }
  const method = found ? 'PUT' : forge.create
  const request = { method, url: forge.fileUrl(object.key), headers, body }
  return send({ ...request, maxReplyBytes: MAX_REPLY_BYTES }, signal)
}

async function remove(repository: Repository, key: string, signal: AbortSignal): Promise<void> {
  const reply = await change(
    repository,
    key,
    `removing "${key}"`,
    signal,
    async found => found && repository.send(removalOf(repository.forge, key, found), signal),
  )
  if (reply) await confirmRemoval(repository, key, reply, signal)
}

async function confirmRemoval(
  repository: Repository,
  key: string,
  reply: HttpReply,
  signal: AbortSignal,
): Promise<void> {
  const { forge, remote } = repository
  const isGone = forge.confirmsRemoval?.(readMembers(reply)) ?? !(await lookUp(repository, key, signal))
  if (!isGone) throw noForge(reply, `removing "${key}"`, remote)
}

function messageOf(template: string, key: string): string {
  const names: Record<string, string> = { '{key}': key, '{filename}': key.slice(key.lastIndexOf('/') + 1) }
  return template.replace(/\{(?:key|filename)\}/g, placeholder => names[placeholder] ?? placeholder)
}

function removalOf(forge: Forge, key: string, found: Found): HttpRequest {
  const members = forge.commit(`Remove ${key}`, found)
  const url = forge.fileUrl(key)
  if (!forge.removesByQuery) {
    const headers = { 'Content-Type': 'application/json' }
    return { method: 'DELETE', url, headers, body: JSON.stringify(members) }
  }
  const query = new URLSearchParams(members as Record<string, string>)
  return { method: 'DELETE', url: `${url}?${query}` }
}

/** Looks at the repository, the branch and what the token may do there. Nothing is committed. */
async function check({ forge, remote, send }: Repository, signal: AbortSignal): Promise<void> {
  const ask = async (url: string, doing: string, isRight: (members: Members) => boolean) => {
    const reply = await send({ method: 'GET', url }, signal)
    if (reply.status !== 200) throw explainReply(reply, doing, remote)
    const members = readMembers(reply)
    if (!isRight(members)) throw noForge(reply, doing, remote)
    return members
  }
  const isRepo = ({ id }: Members) => typeof id === 'number'
  const repo = await ask(forge.repoUrl, `looking for the repository "${remote.repo}"`, isRepo)
  const refuse = (reason: string) => new UploadError('delivery_failed', `"${remote.repo}" ${reason}`)
  if (repo['archived'] === true) throw refuse('is archived and takes no commits.')
  const { push } = membersOf(repo['permissions'] ?? repo['permission'])
  if (push === false) throw refuse("may not be written to by the token's owner.")
  if (repo['empty'] === true || repo['empty_repo'] === true) return // the first upload makes the branch
  const isBranch = ({ name }: Members) => name === remote.branch
  const branch = await ask(forge.branchUrl, `looking for the branch "${remote.branch}"`, isBranch)
  if (branch['can_push'] === false || branch['user_can_push'] === false)
    throw refuse(`lets the token's owner not push to "${remote.branch}".`)
}

function tooLarge({ key, size }: UploadObject, { host }: Remote, maxBytes: number): UploadError {
  return new UploadError(
    'too_large',
    `"${key}" has ${size} bytes, more than the ${maxBytes} that ${host} takes (maxBytes). Nothing was sent.`,
  )
}

/**
 * The members of a JSON object in an answer.
 *
 * @throws UploadError `delivery_failed` when it is no JSON, as a page that asks for a login
 */
export function readMembers(reply: HttpReply): Members {
  return membersOf(reply.json())
}

export function membersOf(value: unknown): Members {
  return typeof value === 'object' && value !== null ? (value as Members) : {}
}
