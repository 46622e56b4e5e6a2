import { UploadError } from '../errors.ts'
import { createHttpClient, type HttpRequest, httpOptions } from '../http/client.ts'
import { secret } from '../options.ts'
import * as z from '../packages/zod.ts'
import { defineProvider, type ProviderDeps, type Target, type UploadObject } from './contract.ts'
import { lendBody } from './shared/body.ts'
import { encodeKey, joinUrl, urlPrefix, withoutSlash } from './shared/public-url.ts'
import { cleanRelative } from './shared/remote-path.ts'

const config = z.object({
  url: urlPrefix().describe('Address of OpenList or AList.'),
  token: secret()
    .optional()
    .describe('Token of the account: the one of the settings for the administrator, or one of a login.'),
  username: z
    .string()
    .min(1)
    .optional()
    .describe('User to log in as, instead of a token. Not with a second factor.'),
  password: secret().optional().describe('Password of the user.'),
  directory: z
    .string()
    .refine(path => !/(?:^|\/)\.{1,2}(?:\/|$)/.test(path), 'must be a folder without "." and ".."')
    .describe(
      'Folder as the user sees it, the storage included: "/local/img". It is made when it is missing.',
    ),
  urlPrefix: urlPrefix()
    .optional()
    .describe(
      'Address below which visitors find the files. Default: "/d" of OpenList, which leads to the storage; "…/p" hands them out.',
    ),
  ...httpOptions,
})

type Options = z.output<typeof config>

/** What every answer looks like; its status is 200 whatever happened. */
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
    testedAgainst: 'documented exchanges',
    example: {
      pictures: {
        url: 'https://list.example.com',
        token: 'OPENLIST_TOKEN',
        directory: '/local/img',
      },
      login: {
        url: 'https://list.example.com',
        username: 'uploader',
        password: 'OPENLIST_PASSWORD',
        directory: '/onedrive/img',
        urlPrefix: 'https://list.example.com/p',
      },
    },
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
      return 'Give a "token", or "username" and "password".'
    return (username === undefined) === (password === undefined)
      ? undefined
      : '"username" and "password" belong together.'
  },
  open,
})

interface Answer {
  readonly code: number
  readonly message: string
  readonly data: unknown
}

function open(options: Options, deps: ProviderDeps): Target {
  const client = createHttpClient(options, deps)
  const address = withoutSlash(options.url)
  const { host } = new URL(address)
  const folder = cleanRelative(options.directory)
  const pathOf = (key: string): string => (folder === '' ? `/${key}` : `/${folder}/${key}`)
  let { token } = options
  /** Folder of the user, in front of every path of links. */
  let base: string | undefined

  async function ask(
    request: Omit<HttpRequest, 'url'> & { path: string },
    signal: AbortSignal,
  ): Promise<Answer> {
    const reply = await client.send({ ...request, url: `${address}${request.path}` }, signal)
    const answer = envelope.safeParse(isJson(reply.text) ? reply.json() : undefined)
    if (answer.success) return answer.data as Answer
    throw failure(`${host} answered, but not as OpenList does. Check "url".`)
  }

  const asJson = (path: string, content: object) => ({
    path,
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(content),
  })

  async function logIn(signal: AbortSignal): Promise<string> {
    const { username, password } = options
    const answer = await ask(asJson('/api/auth/login', { username, password }), signal)
    return read(session, expectDone(answer, 'log in')).token
  }

  /** With the token; a login that has ended is made anew. */
  async function askAsUser(
    request: Omit<HttpRequest, 'url'> & { path: string },
    signal: AbortSignal,
  ): Promise<Answer> {
    const used = token ?? (await logIn(signal))
    token = used
    const answer = await ask({ ...request, headers: { ...request.headers, Authorization: used } }, signal)
    if (answer.code !== 401 || options.token !== undefined) return answer
    token = await logIn(signal)
    return ask({ ...request, headers: { ...request.headers, Authorization: token } }, signal)
  }

  function expectDone({ code, message, data }: Answer, what: string): unknown {
    if (code === 200) return data
    const hint = code === 401 ? ' Check "token", or "username" and "password".' : ''
    throw failure(`${host} did not ${what}: ${message} (${code}).${hint}`, code === 429 || code >= 500)
  }

  function read<T>(schema: z.ZodType<T>, data: unknown): T {
    const parsed = schema.safeParse(data)
    if (parsed.success) return parsed.data
    throw failure(`${host} answered, but not as OpenList does. Check "url".`)
  }

  async function findBase(signal: AbortSignal): Promise<string> {
    const me = read(
      user,
      expectDone(await askAsUser({ method: 'GET', path: '/api/me' }, signal), 'say who we are'),
    )
    if (me.disabled) throw failure(`The user "${me.username}" is disabled at ${host}.`)
    return cleanRelative(me.base_path)
  }

  async function find(key: string, signal: AbortSignal): Promise<z.output<typeof file> | undefined> {
    const answer = await askAsUser(asJson('/api/fs/get', { path: pathOf(key) }), signal)
    if (answer.code !== 200 && /object not found/i.test(answer.message)) return undefined
    const found = read(file, expectDone(answer, `look for "${key}"`))
    return found.is_dir ? undefined : found
  }

  async function store(object: UploadObject, signal: AbortSignal): Promise<void> {
    const headers = {
      'File-Path': `/${encodeKey(pathOf(object.key).slice(1))}`,
      'Content-Type': object.contentType,
      'Content-Length': String(object.size),
    }
    const body = (ending: AbortSignal) => lendBody(object, ending)
    const answer = await askAsUser({ method: 'PUT', path: '/api/fs/put', headers, body }, signal)
    expectDone(answer, `store "${object.key}"`)
  }

  return {
    async put(object, signal) {
      base ??= await findBase(signal)
      await store(object, signal)
      const found = await find(object.key, signal)
      if (found?.size !== object.size)
        throw failure(`${host} said that it has stored "${object.key}", but it has not. Send it again.`, true)
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
      expectDone(await askAsUser(asJson('/api/fs/remove', content), signal), `remove "${key}"`)
      if (await find(key, signal))
        throw failure(`${host} said that it has removed "${key}", but it has not.`, true)
    },
    async close() {
      client.close()
    },
  }
}

function isJson(text: string): boolean {
  return text.trimStart().startsWith('{')
}

function failure(message: string, retryable = false): UploadError {
  return new UploadError('delivery_failed', message, { retryable })
}
