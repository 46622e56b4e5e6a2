import type { HttpRequest } from '../http/client.ts'
import { excerpt } from '../http/excerpt.ts'
import { secret, text } from '../options.ts'
import * as z from '../packages/zod.ts'
import { Problem } from '../problem.ts'
import { type Context, defineProvider, type Target } from './contract.ts'
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
  username: text()
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
type Reply = z.output<typeof envelope>
const loggedIn = z.object({ token: text() })
const user = z.object({ base_path: z.string() })
const file = z.object({ size: z.number(), is_dir: z.boolean(), sign: z.string() })

/** OpenList and AList, whose HTTP API is the same (github.com/OpenListTeam/OpenList, server/handles). */
export const openlist = defineProvider({
  type: 'openlist',
  about: {
    family: 'server',
    what: 'OpenList and AList, with signed links',
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

interface Request extends Omit<HttpRequest, 'url'> {
  readonly path: string
}

function asJson(path: string, content: object): Request {
  const headers = { 'Content-Type': 'application/json' }
  return { path, method: 'POST', headers, body: JSON.stringify(content) }
}

/** Sends requests with the token of the user. Logs in again after the session has expired. */
function createApi(address: string, options: Options, { http, learn }: Context) {
  const { token, username, password } = options
  const { host } = new URL(address)
  let session = token

  function read<T>(schema: z.ZodType<T>, data: unknown): T {
    const parsed = schema.safeParse(data)
    if (parsed.success) return parsed.data
    throw new Problem(`${host} did not return a response of OpenList`, { advice: 'Check "url".' })
  }

  async function send({ path, ...request }: Request, signal: AbortSignal) {
    const reply = await http.send({ ...request, url: address + path }, signal)
    const isJson = reply.text.trimStart().startsWith('{')
    return read(envelope, isJson ? reply.json() : undefined)
  }

  /** Returns the data of a response. @throws Problem unless it is a success */
  function expectDone<T>({ code, message, data }: Reply, what: string, schema: z.ZodType<T>): T {
    if (code === 200) return read(schema, data)
    throw new Problem(`${host} did not ${what}: ${excerpt(message)} (${code})`, {
      advice: code === 401 ? 'Check "token", or "username" and "password".' : undefined,
      retryable: code === 429 || code >= 500,
    })
  }

  async function logIn(signal: AbortSignal): Promise<string> {
    const reply = await send(asJson('/api/auth/login', { username, password }), signal)
    const found = expectDone(reply, 'log in', loggedIn)
    learn([found.token])
    return found.token
  }

  async function ask(request: Request, signal: AbortSignal): Promise<Reply> {
    const askAs = (Authorization: string) =>
      send({ ...request, headers: { ...request.headers, Authorization } }, signal)
    session ??= await logIn(signal)
    const used = session
    const reply = await askAs(used)
    if (reply.code !== 401 || token !== undefined) return reply
    if (session === used) session = await logIn(signal)
    return askAs(session)
  }

  return { host, ask, expectDone }
}

function open(options: Options, context: Context): Target {
  const address = withoutSlash(options.url)
  const { host, ask, expectDone } = createApi(address, options, context)
  const folder = cleanRelative(options.directory)
  const pathOf = (key: string): string => (folder === '' ? `/${key}` : `/${folder}/${key}`)
  /** Folder of the user, which is the prefix of every path in URLs. */
  let base: string | undefined

  async function findBase(signal: AbortSignal): Promise<string> {
    const reply = await ask({ method: 'GET', path: '/api/me' }, signal)
    return cleanRelative(expectDone(reply, 'identify the user', user).base_path)
  }

  async function find(key: string, signal: AbortSignal): Promise<z.output<typeof file> | undefined> {
    const reply = await ask(asJson('/api/fs/get', { path: pathOf(key) }), signal)
    if (reply.code !== 200 && /object not found/i.test(reply.message)) return undefined
    const found = expectDone(reply, 'look for it', file)
    return found.is_dir ? undefined : found
  }

  return {
    location: locationAt('openlist', address, folder),
    async put(object, signal) {
      base ??= await findBase(signal)
      const path = pathOf(object.key).slice(1)
      const headers = { 'File-Path': `/${encodeKey(path)}`, 'Content-Type': object.contentType }
      const reply = await ask({ method: 'PUT', path: '/api/fs/put', headers, body: object }, signal)
      expectDone(reply, 'store it', z.unknown())
      const found = await find(object.key, signal)
      if (found?.size !== object.size)
        throw new Problem(`${host} reported that it stored the file, but the file is not there`, {
          retryable: true,
        })
      const url = joinUrl(options.urlPrefix ?? `${address}/d`, [base, path].filter(Boolean).join('/'))
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
      expectDone(await ask(asJson('/api/fs/remove', content), signal), 'remove it', z.unknown())
      if (await find(key, signal))
        throw new Problem(`${host} reported that it removed the file, but it still exists`, {
          retryable: true,
        })
    },
  }
}
