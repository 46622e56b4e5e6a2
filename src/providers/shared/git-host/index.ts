import { type HttpClient, HttpRefusal, type HttpReply, type HttpRequest } from '../../../http/client.ts'
import { excerpt } from '../../../http/excerpt.ts'
import { type Members, membersOf } from '../../../members.ts'
import type * as z from '../../../packages/zod.ts'
import { Problem } from '../../../problem.ts'
import { defineProvider, type Provider, type Target } from '../../contract.ts'
import { locationAt } from '../location.ts'
import { joinUrl } from '../public-url.ts'
import { createCommitBody, isBlobOf } from './body.ts'
import { explainReply, isAbsent, isStale } from './failure.ts'
import type { GitOptions } from './options.ts'

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
export interface GitApi {
  /** Headers of every request, including the token. */
  readonly headers: Readonly<Record<string, string>>
  readonly repoUrl: string
  readonly branchUrl: string
  fileUrl(key: string): string
  readonly lookUp: 'GET' | 'HEAD'
  /** Reads the response to a lookup. Undefined: it is of another service. */
  read(reply: HttpReply): RepositoryFile | undefined
  /** Method that creates a file. PUT changes one. */
  readonly create: 'PUT' | 'POST'
  /** Members of a commit in addition to its content. `found` is the file that it replaces or removes. */
  commit(message: string, found: RepositoryFile | undefined): Record<string, unknown>
  /** Members that are sent with the content. */
  readonly content?: Readonly<Record<string, string>>
  /** Returns the path of the file that was stored, from the response to a commit. */
  storedAt(answer: Members): unknown
  /** Returns whether the response confirms that the file was removed. Without it, the file is looked up. */
  confirmsRemoval?(answer: Members): boolean
  /** Public URL of the branch, without a slash at the end. */
  readonly publicUrl: string
}

type GitConfig = z.ZodObject & z.ZodType<GitOptions>

export interface GitHost<C extends GitConfig> extends Omit<Provider<C>, 'open'> {
  api(options: z.output<C>): GitApi
}

/** Makes the provider of a Git host: it stores files as commits through the API, one commit per file. */
export function gitHost<C extends GitConfig>({ api, validate, ...provider }: GitHost<C>) {
  return defineProvider<C>({
    ...provider,
    validate(options) {
      const { authorName, authorEmail } = options
      if ((authorName === undefined) !== (authorEmail === undefined))
        return 'Set both "authorName" and "authorEmail", or neither.'
      return validate?.(options)
    },
    open: (options, { http }) => createTarget(api(options), options, http),
  })
}

function createTarget(api: GitApi, options: GitOptions, http: HttpClient): Target {
  const { repo, branch, urlPrefix, commitMessage, fileSize } = options
  const { host } = new URL(api.repoUrl)

  function send(request: HttpRequest, signal: AbortSignal): Promise<HttpReply> {
    const headers = { ...api.headers, ...request.headers }
    const explain = (reply: HttpReply) => explainReply(reply, options)
    return http.send({ ...request, headers, explain, maxReplyBytes: MAX_REPLY_BYTES }, signal)
  }

  /** The problem of a successful response that is not from the API of a Git host. */
  const notGitHost = ({ status, text }: HttpReply) =>
    new Problem(`${host} returned ${status}, but not a response of its API: ${excerpt(text)}`, {
      advice: 'Check "apiUrl" and any proxy in between.',
    })

  async function lookUp(key: string, signal: AbortSignal): Promise<RepositoryFile | undefined> {
    const url = `${api.fileUrl(key)}?ref=${encodeURIComponent(branch)}`
    const accept = (status: number, reply: HttpReply) => status === 200 || isAbsent(reply)
    const reply = await send({ method: api.lookUp, url, accept }, signal)
    if (isAbsent(reply)) return undefined
    const found = api.read(reply)
    if (found === undefined) throw notGitHost(reply)
    return found
  }

  /**
   * Looks up a file and changes it. Repeats both once if another commit came between them.
   *
   * @param prepare returns undefined if no change is needed
   */
  async function change(
    key: string,
    signal: AbortSignal,
    prepare: (found: RepositoryFile | undefined) => Promise<Pick<HttpRequest, 'method' | 'body'> | undefined>,
  ): Promise<HttpReply | undefined> {
    for (let attempt = 1; ; attempt++) {
      const found = await lookUp(key, signal)
      const request = await prepare(found)
      if (request === undefined) return undefined
      try {
        const headers = { 'Content-Type': 'application/json' }
        return await send({ ...request, url: api.fileUrl(key), headers }, signal)
      } catch (error) {
        const wasStale = error instanceof HttpRefusal && isStale(error.reply, found !== undefined)
        if (!wasStale || attempt === 2) throw error
      }
    }
  }

  return {
    // Repository names are case-insensitive; branch names may contain slashes.
    location: `${locationAt('git', api.repoUrl.toLowerCase())}@${encodeURIComponent(branch)}/`,
    traits: { serial: true },
    async put(object, signal) {
      const { key, size } = object
      if (size > fileSize) {
        const why = `it has ${size} bytes, more than the limit of ${fileSize} bytes for ${host} (fileSize)`
        throw new Problem(why, { code: 'too_large' })
      }
      const reply = await change(key, signal, async found => {
        if (found?.size === size && (await isBlobOf(object, found.sha, signal))) return undefined
        const members = { ...api.commit(messageOf(commitMessage, key), found), ...api.content }
        return { method: found ? 'PUT' : api.create, body: createCommitBody(object, members) }
      })
      // A login page also has status 200, so the response must confirm the commit.
      if (reply && api.storedAt(readMembers(reply)) !== key) throw notGitHost(reply)
      return { url: joinUrl(urlPrefix ?? api.publicUrl, key) }
    },
    async remove(key, signal) {
      const reply = await change(
        key,
        signal,
        async found =>
          found && { method: 'DELETE', body: JSON.stringify(api.commit(`Remove ${key}`, found)) },
      )
      if (reply === undefined) return
      const isGone = api.confirmsRemoval?.(readMembers(reply)) ?? !(await lookUp(key, signal))
      if (!isGone) throw notGitHost(reply)
    },
    exists: async (key, signal) => (await lookUp(key, signal)) !== undefined,
    /** Checks the repository, the branch and the permissions of the token, without a commit. */
    async check(signal) {
      const ask = async (url: string, isRight: (members: Members) => boolean) => {
        const reply = await send({ method: 'GET', url }, signal)
        const members = readMembers(reply)
        if (!isRight(members)) throw notGitHost(reply)
        return members
      }
      const found = await ask(api.repoUrl, ({ id }) => typeof id === 'number')
      const refuse = (reason: string, advice: string) => new Problem(`"${repo}" ${reason}`, { advice })
      if (found['archived'] === true)
        throw refuse('is archived and accepts no commits', 'Use another repository.')
      if (membersOf(found['permissions'])['push'] === false)
        throw refuse('is not writable for the owner of the token', 'Give it write access.')
      if (found['empty'] === true || found['empty_repo'] === true) return // the first upload creates the branch
      const { can_push, user_can_push } = await ask(api.branchUrl, ({ name }) => name === branch)
      if (can_push === false || user_can_push === false)
        throw refuse(
          `does not allow the owner of the token to push to "${branch}"`,
          'Give it push access, or use another branch.',
        )
    },
  }
}

function messageOf(template: string, key: string): string {
  const names: Record<string, string> = { '{key}': key, '{filename}': key.slice(key.lastIndexOf('/') + 1) }
  return template.replace(/\{(?:key|filename)\}/g, placeholder => names[placeholder] ?? placeholder)
}

/**
 * Returns the members of a JSON object in a response.
 *
 * @throws Problem if it is not JSON, for example a login page
 */
export function readMembers(reply: HttpReply): Members {
  return membersOf(reply.json())
}
