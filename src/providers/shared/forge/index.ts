import { retry } from '../../../flow/retry.ts'
import type { HttpClient, HttpReply, HttpRequest } from '../../../http/client.ts'
import { type Members, membersOf } from '../../../members.ts'
import { Problem } from '../../../problem.ts'
import type { Target, UploadObject } from '../../contract.ts'
import { locationAt } from '../location.ts'
import { joinUrl } from '../public-url.ts'
import { createCommitBody, isBlobOf } from './body.ts'
import { explainReply, isStale, lacksBranch, notGitHost, type RemoteBranch } from './failure.ts'
import type { ContentsOptions } from './options.ts'

/** Some Git hosts include the content of the file in their responses: Gitea up to 10 MiB in Base64. */
const MAX_REPLY_BYTES = 16 * 1024 * 1024

/** A file in the branch. */
export interface RepositoryFile {
  /** Git object ID of its bytes. */
  readonly sha: string
  /** Bytes. */
  readonly size: number
  /** The last commit that changed it, if the Git host returns it. */
  readonly commit?: string | undefined
}

/** The API of one Git host, as far as it differs from the others. */
export interface Forge {
  /** Headers of every request, including the token. */
  readonly headers: Readonly<Record<string, string>>
  readonly repoUrl: string
  readonly branchUrl: string
  fileUrl(key: string): string
  readonly lookUp: 'GET' | 'HEAD'
  /** Reads the response to a lookup. "unknown": it is of another service. */
  read(reply: HttpReply): RepositoryFile | 'unknown'
  /** Method that creates a file. PUT changes one. */
  readonly create: 'PUT' | 'POST'
  /** Members of a commit in addition to its content. `found` is the file that it replaces or removes. */
  commit(message: string, found: RepositoryFile | undefined): Record<string, unknown>
  /**
   * Returns whether the response to a commit confirms that the file was stored.
   *
   * @param isContent whether a Git object ID is that of the sent bytes
   */
  confirms(
    answer: Members,
    key: string,
    isContent: (sha: string) => Promise<boolean>,
  ): boolean | Promise<boolean>
  /** Returns whether the response confirms that the file was removed. Without it, the file is looked up. */
  confirmsRemoval?(answer: Members): boolean
  /** Members that are sent with the content. */
  readonly content?: Readonly<Record<string, string>>
  /** Public URL of the branch, without a slash at the end. */
  readonly publicUrl: string
}

/** One destination at a Git host. */
interface Repository {
  readonly forge: Forge
  readonly options: ContentsOptions
  readonly remote: RemoteBranch
  /** Sends a request. Throws transient failures and returns all other responses. */
  send(request: HttpRequest, signal: AbortSignal): Promise<HttpReply>
}

/** Stores files as commits through the API of a Git host, one commit per file. */
export function createContentsTarget(forge: Forge, options: ContentsOptions, http: HttpClient): Target {
  const { repo, branch, token, maxBytes, urlPrefix } = options
  const repository: Repository = {
    forge,
    options,
    remote: { host: new URL(forge.repoUrl).host, repo, branch, token },
    send({ headers, ...request }, signal) {
      const accept = (status: number) => status < 500 && status !== 408 && status !== 425
      return http.send({ ...request, headers: { ...forge.headers, ...headers }, accept }, signal)
    },
  }
  return {
    // Repository names are case-insensitive; branch names may contain slashes.
    location: `${locationAt('git', forge.repoUrl.toLowerCase())}@${encodeURIComponent(branch)}/`,
    traits: { serial: true },
    async put(object, signal) {
      if (object.size > maxBytes) throw tooLarge(object, repository.remote, maxBytes)
      await store(repository, object, signal)
      return { url: joinUrl(urlPrefix ?? forge.publicUrl, object.key) }
    },
    remove: (key, signal) => remove(repository, key, signal),
    exists: async (key, signal) => (await lookUp(repository, key, signal)) !== undefined,
    check: signal => check(repository, signal),
  }
}

async function lookUp(
  { forge, remote, send }: Repository,
  key: string,
  signal: AbortSignal,
): Promise<RepositoryFile | undefined> {
  const url = `${forge.fileUrl(key)}?ref=${encodeURIComponent(remote.branch)}`
  const reply = await send({ method: forge.lookUp, url, maxReplyBytes: MAX_REPLY_BYTES }, signal)
  if (reply.status === 404 && !lacksBranch(reply)) return undefined
  if (reply.status === 409 && /empty/i.test(reply.text)) return undefined // no commit in the repository yet
  if (reply.status !== 200) throw explainReply(reply, remote)
  const found = forge.read(reply)
  if (found === 'unknown') throw notGitHost(reply, remote)
  return found
}

async function store(repository: Repository, object: UploadObject, signal: AbortSignal): Promise<void> {
  const { key, size } = object
  const reply = await change(repository, key, signal, async found => {
    if (found?.size === size && (await isBlobOf(object, found.sha, signal))) return undefined
    return commit(repository, object, found, signal)
  })
  if (reply) await confirm(repository, object, reply, signal)
}

/**
 * Looks up a file and changes it. Repeats both once if another commit came between them.
 *
 * @param send returns undefined if no change is needed
 */
function change(
  repository: Repository,
  key: string,
  signal: AbortSignal,
  send: (found: RepositoryFile | undefined) => Promise<HttpReply | undefined>,
): Promise<HttpReply | undefined> {
  let wasStale = false
  const attempt = async () => {
    wasStale = false
    const found = await lookUp(repository, key, signal)
    const reply = await send(found)
    if (reply === undefined || reply.status < 300) return reply
    wasStale = isStale(reply, found !== undefined)
    throw explainReply(reply, repository.remote)
  }
  return retry(attempt, { attempts: 2, transient: () => wasStale && { retryAfterS: 0 } }, signal)
}

/** A login page also has status 200, so the response must confirm the commit. */
async function confirm(
  { forge, remote }: Repository,
  object: UploadObject,
  reply: HttpReply,
  signal: AbortSignal,
): Promise<void> {
  const isContent = (sha: string) => isBlobOf(object, sha, signal)
  if (await forge.confirms(readMembers(reply), object.key, isContent)) return
  throw notGitHost(reply, remote)
}

function commit(
  { forge, options, send }: Repository,
  object: UploadObject,
  found: RepositoryFile | undefined,
  signal: AbortSignal,
): Promise<HttpReply> {
  const members = { ...forge.commit(messageOf(options.commitMessage, object.key), found), ...forge.content }
  const body = createCommitBody(object, members)
  const headers = { 'Content-Type': 'application/json' }
  const method = found ? 'PUT' : forge.create
  const request = { method, url: forge.fileUrl(object.key), headers, body }
  return send({ ...request, maxReplyBytes: MAX_REPLY_BYTES }, signal)
}

async function remove(repository: Repository, key: string, signal: AbortSignal): Promise<void> {
  const reply = await change(
    repository,
    key,
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
  if (!isGone) throw notGitHost(reply, remote)
}

function messageOf(template: string, key: string): string {
  const names: Record<string, string> = { '{key}': key, '{filename}': key.slice(key.lastIndexOf('/') + 1) }
  return template.replace(/\{(?:key|filename)\}/g, placeholder => names[placeholder] ?? placeholder)
}

function removalOf(forge: Forge, key: string, found: RepositoryFile): HttpRequest {
  const members = forge.commit(`Remove ${key}`, found)
  const headers = { 'Content-Type': 'application/json' }
  return { method: 'DELETE', url: forge.fileUrl(key), headers, body: JSON.stringify(members) }
}

/** Checks the repository, the branch and the permissions of the token, without a commit. */
async function check({ forge, remote, send }: Repository, signal: AbortSignal): Promise<void> {
  const ask = async (url: string, isRight: (members: Members) => boolean) => {
    const reply = await send({ method: 'GET', url }, signal)
    if (reply.status !== 200) throw explainReply(reply, remote)
    const members = readMembers(reply)
    if (!isRight(members)) throw notGitHost(reply, remote)
    return members
  }
  const isRepo = ({ id }: Members) => typeof id === 'number'
  const repo = await ask(forge.repoUrl, isRepo)
  const refuse = (reason: string, advice: string) => new Problem(`"${remote.repo}" ${reason}`, { advice })
  if (repo['archived'] === true) throw refuse('is archived and accepts no commits', 'Use another repository.')
  const { push } = membersOf(repo['permissions'])
  if (push === false) throw refuse('is not writable for the owner of the token', 'Give it write access.')
  if (repo['empty'] === true || repo['empty_repo'] === true) return // the first upload creates the branch
  const isBranch = ({ name }: Members) => name === remote.branch
  const branch = await ask(forge.branchUrl, isBranch)
  if (branch['can_push'] === false || branch['user_can_push'] === false)
    throw refuse(
      `does not allow the owner of the token to push to "${remote.branch}"`,
      'Give it push access, or use another branch.',
    )
}

function tooLarge({ size }: UploadObject, { host }: RemoteBranch, maxBytes: number): Problem {
  return new Problem(
    `it has ${size} bytes, more than the limit of ${maxBytes} bytes for ${host} (maxBytes)`,
    {
      code: 'too_large',
    },
  )
}

/**
 * Returns the members of a JSON object in a response.
 *
 * @throws Problem if it is not JSON, for example a login page
 */
export function readMembers(reply: HttpReply): Members {
  return membersOf(reply.json())
}
