import { createCanceller, orAborted } from '../flow/cancellation.ts'
import type { HttpRequest } from '../http/client.ts'
import { excerpt } from '../http/excerpt.ts'
import { secret } from '../options.ts'
import * as z from '../packages/zod.ts'
import { Problem } from '../problem.ts'
import { type Context, defineProvider, type Target, type UploadObject } from './contract.ts'
import { locationAt } from './shared/location.ts'
import { encodeKey, joinUrl, urlPrefix, withoutSlash } from './shared/public-url.ts'
import { cleanRelative, plainFolder } from './shared/remote-path.ts'

const config = z.object({
  url: urlPrefix().describe('URL of OpenList or AList.'),
  token: secret()
    .optional()
    .describe(
      "Token of the account: the administrator's token from the settings, or a token issued by a login.",
    ),
  username: z
    .string()
    .min(1)
    .optional()
    .describe(
      'User name to log in with instead of a token. Accounts with two-factor authentication need a token.',
    ),
  password: secret().optional().describe('Password of the user.'),
  directory: plainFolder().describe(
    'Folder in OpenList, beginning with the mount path of the storage, such as "/local/img". Created if it does not exist.',
  ),
  urlPrefix: urlPrefix()
    .optional()
    .describe(
      'Public base URL of the files. Default: "/d" of OpenList, which redirects to the storage. With "…/p", OpenList serves the files itself.',
    ),
})

type Options = z.output<typeof config>

/** Format of every response. Its status is 200 also for errors. */
const envelope = z.object({ code: z.number(), message: z.string(), data: z.unknown() })
const session = z.object({ token: z.string().min(1) })
const user = z.object({ username: z.string(), base_path: z.string(), disabled: z.boolean() })
const file = z.object({ size: z.number(), is_dir: z.boolean(), sign: z.string() })

/** OpenList and AList, whose HTTP API is the same (github.com/OpenListTeam/OpenList, server/handles). */
export const openlist = defineProvider({
  type: 'openlist',
  about: {
    family: 'server',
    what: 'OpenList and AList, with signed links',
    testedAgainst: 'a mock of the documented API',
    choices: [
      {
        label: 'OpenList, AList',
        asks: ['url', 'token', 'directory'],
        where: 'the settings of OpenList, Other → Token.',
      },
    ],
  },
  config,
  validate({ token, username, password }) {
    if ((token === undefined) === (username === undefined))
      return 'Set "token", or "username" and "password".'
    return (username === undefined) === (password === undefined)
      ? undefined
      : 'Set both "username" and "password", or neither.'
  },
  open,
})

type OpenListReply = z.infer<typeof envelope>

interface ApiRequest extends Omit<HttpRequest, 'url'> {
  readonly path: string
}

/** The API with the permissions of the user. */
interface OpenListApi {
  ask(request: ApiRequest, signal: AbortSignal): Promise<OpenListReply>
}

/** Sends requests with the token. Logs in again after the session has expired. */
function createApi(address: string, options: Options, { http, learn }: Context): OpenListApi {
  const { host } = new URL(address)
  let loggedIn = options.token === undefined ? undefined : Promise.resolve(options.token)

  async function send(request: ApiRequest, signal: AbortSignal): Promise<OpenListReply> {
    const reply = await http.send({ ...request, url: `${address}${request.path}` }, signal)
    const isJson = reply.text.trimStart().startsWith('{')
    return read(envelope, isJson ? reply.json() : undefined, host)
  }

  async function logIn(signal: AbortSignal): Promise<string> {
    const { username, password } = options
    const reply = await send(asJson('/api/auth/login', { username, password }), signal)
    const { token } = read(session, expectDone(reply, host, 'log in'), host)
    learn([token])
    return token
  }

  /**
   * Returns the current session. Concurrent requests share one login.
   *
   * @param rejected session that the server no longer accepts
   */
  function current(rejected?: Promise<string>): Promise<string> {
    if (loggedIn !== undefined && loggedIn !== rejected) return loggedIn
    // The other requests still need it when one of them is aborted.
    const next = logIn(createCanceller().signal)
    loggedIn = next
    next.catch(() => {
      if (loggedIn === next) loggedIn = undefined
    })
    return next
  }

  const sendWith = (Authorization: string, request: ApiRequest, signal: AbortSignal) =>
    send({ ...request, headers: { ...request.headers, Authorization } }, signal)

  return {
    async ask(request, signal) {
      const used = current()
      const reply = await sendWith(await orAborted(used, signal), request, signal)
      if (reply.code !== 401 || options.token !== undefined) return reply
      return sendWith(await orAborted(current(used), signal), request, signal)
    },
  }
}

function asJson(path: string, content: object): ApiRequest {
  const headers = { 'Content-Type': 'application/json' }
  return { path, method: 'POST', headers, body: JSON.stringify(content) }
}

function expectDone({ code, message, data }: OpenListReply, host: string, what: string): unknown {
  if (code === 200) return data
  throw new Problem(`${host} did not ${what}: ${excerpt(message)} (${code})`, {
    advice: code === 401 ? 'Check "token", or "username" and "password".' : undefined,
    retryable: code === 429 || code >= 500,
  })
}

function read<T>(schema: z.ZodType<T>, data: unknown, host: string): T {
  const parsed = schema.safeParse(data)
  if (parsed.success) return parsed.data
  throw new Problem(`${host} did not return a response of OpenList`, { advice: 'Check "url".' })
}

function open(options: Options, context: Context): Target {
  const address = withoutSlash(options.url)
  const { host } = new URL(address)
  const api = createApi(address, options, context)
  const folder = cleanRelative(options.directory)
  const pathOf = (key: string): string => (folder === '' ? `/${key}` : `/${folder}/${key}`)
  /** Folder of the user, which is the prefix of every path in URLs. */
  let base: string | undefined

  async function findBase(signal: AbortSignal): Promise<string> {
    const reply = await api.ask({ method: 'GET', path: '/api/me' }, signal)
    const me = read(user, expectDone(reply, host, 'identify the user'), host)
    if (me.disabled)
      throw new Problem(`the user "${excerpt(me.username)}" is disabled at ${host}`, {
        advice: 'Enable it, or use another user.',
      })
    return cleanRelative(me.base_path)
  }

  async function find(key: string, signal: AbortSignal): Promise<z.output<typeof file> | undefined> {
    const reply = await api.ask(asJson('/api/fs/get', { path: pathOf(key) }), signal)
    if (reply.code !== 200 && /object not found/i.test(reply.message)) return undefined
    const found = read(file, expectDone(reply, host, 'look for it'), host)
    return found.is_dir ? undefined : found
  }

  async function store(object: UploadObject, signal: AbortSignal): Promise<void> {
    const headers = {
      'File-Path': `/${encodeKey(pathOf(object.key).slice(1))}`,
      'Content-Type': object.contentType,
    }
    const reply = await api.ask({ method: 'PUT', path: '/api/fs/put', headers, body: object }, signal)
    expectDone(reply, host, 'store it')
  }

  return {
    location: locationAt('openlist', address, folder),
    async put(object, signal) {
      base ??= await findBase(signal)
      await store(object, signal)
      const found = await find(object.key, signal)
      if (found?.size !== object.size)
        throw new Problem(`${host} reported that it stored the file, but the file is not there`, {
          retryable: true,
        })
      const path = [base, pathOf(object.key).slice(1)].filter(Boolean).join('/')
      const url = joinUrl(options.urlPrefix ?? `${address}/d`, path)
      return { url: found.sign === '' ? url : `${url}?sign=${encodeURIComponent(found.sign)}` }
    },
    async check(signal) {
      base = await findBase(signal)
    },
    exists: async (key, signal) => (await find(key, signal)) !== undefined,
    async remove(key, signal) {
      if (!(await find(key, signal))) return
      const path = pathOf(key)
      const slash = path.lastIndexOf('/')
      const content = { dir: path.slice(0, slash) || '/', names: [path.slice(slash + 1)] }
      expectDone(await api.ask(asJson('/api/fs/remove', content), signal), host, 'remove it')
      if (await find(key, signal))
        throw new Problem(`${host} reported that it removed the file, but it still exists`, {
          retryable: true,
        })
    },
  }
}
