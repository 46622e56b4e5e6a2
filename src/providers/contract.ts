import type { Readable } from 'node:stream'
import { UploadError } from '../errors.ts'
import type { HeldFile } from '../files/held.ts'
import { within } from '../flow/time-limit.ts'
import type { Outgoing } from '../http/proxy/outgoing.ts'
import type * as z from '../packages/zod.ts'
import type { Spool } from '../payload/spool.ts'
import { checkKey, faultOf } from './shared/check-key.ts'
import { type Attempted, explainFailure } from './shared/explain-failure.ts'

/** A file to upload: an object key and the bytes to store under it. */
export interface UploadObject {
  /**
   * Object key, the path at the destination: `/`-separated, no leading slash, no empty, `.` or `..` segment, no control
   * character, at most 1024 bytes in UTF-8. Other Unicode characters are allowed. It is checked before a target gets it.
   */
  readonly key: string
  /** Bytes. */
  readonly size: number
  /** MIME type found in the bytes; `application/octet-stream` when unknown. */
  readonly contentType: string
  /** SHA-256 of the bytes, hex. */
  readonly sha256: string
  /**
   * Path of a private file with the bytes, if they are in a file. It is valid for this process and its child processes,
   * and must not be modified. A hard link to it shares bytes and mode with every other hard link.
   */
  readonly path?: string | undefined
  /** The whole body in chunks, without a copy. Undefined if it is not in memory. */
  chunks?(): readonly Uint8Array[] | undefined
  /** Returns a new stream of the whole body at each call. */
  stream(): Readable
  /** The whole body. */
  bytes(): Promise<Buffer>
}

/** What a destination returns for a stored object. */
export interface Stored {
  /** Absolute http(s) URL, or one relative to this server's public URL (`files/Default/a.png`). */
  url: string
  /** URL that deletes the object when it is opened. If it needs another method, the page of the provider documents it. */
  deleteUrl?: string
}

/** A server whose host key is unknown. */
export interface UnknownHost {
  /** Its host key, as text for a person. */
  readonly shown: string
  /** Trusts the host key from now on. */
  trust(): Promise<void>
}

/** Files in OpenSSH's format with known host keys. */
export interface KnownHosts {
  /** The file to which new host keys are added. */
  readonly kept: string
  /** Files of other programs, which are only read, each with a description for messages. */
  readonly others: readonly { readonly path: string; readonly words: string }[]
}

/** A URL that gives access to an object until it expires. */
export interface SignedUrl {
  readonly url: string
  /** Lifetime in seconds. */
  readonly forS: number
}

/** A provider with its options applied. Operations that it does not support are undefined; callers check for the method. */
export interface Target {
  /** Stores the object and replaces one with the same object key. Safe to call concurrently unless `serial` is true. */
  put(object: UploadObject, signal: AbortSignal): Promise<Stored>
  /**
   * Canonical prefix of its objects: `location + key` identifies an object. Two targets that reach the same object must return
   * the same prefix, even if their options or names differ. It is stored in the database, so it must contain no secret, and
   * must not change when credentials change. Default: a prefix that no other destination has.
   */
  readonly location?: string
  /** If true, `put` is called for one object at a time. */
  readonly serial?: boolean
  /** Spool on the destination's file system. Payloads are spooled there, so that `put` can link instead of copy. */
  readonly spool?: Spool
  /** If true, the destination names files itself, so that equal object keys replace nothing. */
  readonly namesFiles?: boolean
  /** Returns the server if its host key is not trusted yet. Sends it no credentials. */
  findUnknownHost?(signal: AbortSignal): Promise<UnknownHost | undefined>
  /** Verifies the URL and the credentials. Leaves nothing behind. */
  check?(signal: AbortSignal): Promise<void>
  /** Removes an object. Used by `upload-server check`, `remove`, expiry and the tests, never by a route. */
  remove?(key: string, signal: AbortSignal): Promise<void>
  /**
   * Removes several objects with fewer requests than `remove` needs. Needs `remove`. A missing object counts as removed.
   *
   * @returns the reason for each object that could not be removed, by key
   * @throws if none of them could be removed
   */
  removeMany?(keys: readonly string[], signal: AbortSignal): Promise<ReadonlyMap<string, unknown>>
  /** Returns whether an object with that key exists. `onConflict` and `dedupe` need it. */
  exists?(key: string, signal: AbortSignal): Promise<boolean>
  /**
   * Stores an object unless another one has the key, in one request. `onConflict` then needs no `exists` before each `put`.
   *
   * @param isRepeated whether an earlier attempt may have stored the same bytes, which must not count as another object
   * @returns undefined if another object has the key
   */
  putIfAbsent?(object: UploadObject, isRepeated: boolean, signal: AbortSignal): Promise<Stored | undefined>
  /** Maximum size of an object for `putIfAbsent`, bytes. Default: no limit. */
  readonly ifAbsentUpTo?: number
  /**
   * Creates a signed URL for an object, which need not exist. `link` needs it.
   *
   * @param mostS maximum lifetime, in seconds
   */
  sign?(key: string, method: 'GET' | 'HEAD', mostS: number, signal: AbortSignal): Promise<SignedUrl>
  /** If true, URLs that `put` returns expire, and `sign` creates new ones for stored objects. */
  readonly linksExpire?: boolean
  /** Opens a stored object that this server may serve under /files/. Undefined if it does not exist. */
  locate?(key: string): Promise<HeldFile | undefined>
  close?(): Promise<void>
}

/** What a provider gets from the server. */
export interface ProviderDeps {
  /** Name of the destination (`configName`). */
  readonly name: string
  /** Logs a warning for the operator. Secrets are masked. */
  warn(message: string): void
  /** Also masks credentials that were created or read at run time: those of a session, a role or a file. */
  learn?(credentials: readonly string[]): void
  /** Files and folders of the server itself. They must never be overwritten or served. */
  readonly ownPaths?: readonly string[]
  /** If undefined, host keys are trusted by the configuration only. */
  readonly knownHosts?: KnownHosts | undefined
  /** Outbound proxies for its connections. Default: none. */
  readonly outgoing?: Outgoing | undefined
  /** Working directory of started programs. It must not be a folder that another user can create. Default: the root. */
  readonly programFolder?: string | undefined
}

/** Families of providers, in the order of `init` and the README. Within a family, providers are sorted by type. */
export const FAMILIES = ['folder', 'bucket', 'repository', 'server', 'host', 'other'] as const

/** A choice that `init` offers, with the options that it asks for. */
export interface InitChoice {
  readonly label: string
  readonly hint?: string
  /** Options that are set without asking. */
  readonly options?: Readonly<Record<string, unknown>>
  /** Options to ask for, in this order. Those with a question mark may stay empty. */
  readonly asks: readonly string[]
  /** Where a person creates the credentials. */
  readonly where?: string
}

/** Description of a provider for people. `npm run generate` copies it into the README and its page. */
export interface About {
  readonly family: (typeof FAMILIES)[number]
  /** What the provider is, as a phrase in Markdown. */
  readonly what: string
  /** What its tests run against, as a phrase in Markdown. */
  readonly testedAgainst: string
  /** Example destinations for its page, by name. The first one is the default. A secret is the name of a variable. */
  readonly example: Readonly<Record<string, Readonly<Record<string, unknown>>>>
  /** True if its targets have `sign`, or the name of the option that `sign` needs. Default: no `sign`. */
  readonly signs?: true | string
  /** At least one. */
  readonly choices: readonly InitChoice[]
}

/** A type of destination: a plain object made by `defineProvider`. CONTRIBUTING.md describes how to add one. */
export interface Provider<C extends z.ZodObject = z.ZodObject> {
  /** Name of its file or folder and of its export. Also its name under `providers` and in the `picbed` of a request. */
  readonly type: string
  /** Required for every provider in `src/providers`. `init` does not offer a plugin without it. */
  readonly about?: About
  /** Options. Each one has a `.describe()`. Secrets are made with `secret()`. */
  readonly config: C
  /** Returns a sentence about options that are valid alone but not together, or undefined if all are valid. */
  validate?(config: z.output<C>): string | undefined
  /** Defaults of options with `"link": "redirect"`, because the bucket is private then. */
  readonly redirected?: Readonly<Record<string, unknown>>
  /** Translates options of PicGo and PicList. The notes list what can't be imported. */
  fromPicGo?(options: Record<string, unknown>): { options: Record<string, unknown>; notes: string[] }
  /** Must not connect, so that the server starts although a destination is down. */
  open(config: z.output<C>, deps: ProviderDeps): Target | Promise<Target>
}

const defined = new WeakSet<object>()

/**
 * Checks the shape of a provider and keeps the type of its options. Its targets get only valid object keys.
 *
 * @throws Error if it has no `open`. Its `open` throws if it returns an invalid target
 */
export function defineProvider<C extends z.ZodObject>(provider: Provider<C>): Provider<C> {
  if (typeof provider.open !== 'function') throw new Error(`"open" of "${provider.type}" must be a function`)
  const result: Provider<C> = {
    ...provider,
    open(config, deps) {
      const opened = provider.open(config, deps)
      const check = (target: Target) => withCheckedKeys(target, `${provider.type}/${deps.name}`)
      return opened instanceof Promise ? opened.then(check) : check(opened)
    },
  }
  defined.add(result)
  return result
}

/** Returns whether a provider was made by `defineProvider` of this copy of the program. */
export function isDefined(provider: unknown): provider is Provider {
  return typeof provider === 'object' && provider !== null && defined.has(provider)
}

/** Time limit for `close`, which may wait for uploads in progress. */
const CLOSE_LIMIT_MS = 30_000
const notClosed = () => new Error(`it did not close within ${CLOSE_LIMIT_MS / 1000} s`)

const OPTIONAL_METHODS = [
  'findUnknownHost',
  'check',
  'remove',
  'removeMany',
  'exists',
  'putIfAbsent',
  'sign',
  'locate',
  'close',
] as const

/** Plugins may be written in JavaScript, so their types are checked at run time. */
function checkTarget(target: Target): void {
  if (typeof target?.put !== 'function')
    throw new Error('its "open" must return an object with the function "put"')
  const wrong = OPTIONAL_METHODS.find(name => !['function', 'undefined'].includes(typeof target[name]))
  if (wrong !== undefined)
    throw new Error(`"${wrong}" of the object that its "open" returned is not a function`)
  if (target.location !== undefined && (typeof target.location !== 'string' || target.location === ''))
    throw new Error('"location" of the object that its "open" returned must be a non-empty string')
}

/** Makes a target that gets only valid object keys: `remove('')` could delete a whole bucket or folder. */
function withCheckedKeys(target: Target, id: string): Target {
  checkTarget(target)
  const {
    exists,
    putIfAbsent,
    remove,
    removeMany,
    sign,
    locate,
    findUnknownHost,
    check,
    close,
    location = `${id}/`,
  } = target
  return {
    ...target,
    location,
    // Spreading does not copy the methods of a class.
    ...(findUnknownHost && { findUnknownHost: async signal => findUnknownHost.call(target, signal) }),
    ...(check && { check: signal => attempt({ id }, signal, async () => check.call(target, signal)) }),
    ...(close && { close: async () => within(close.call(target), CLOSE_LIMIT_MS, notClosed) }),
    async put(object, signal) {
      checkKey(object.key)
      const work = async () => checkStored(await target.put(object, signal), object.key)
      return attempt({ id, what: { verb: 'store', key: object.key } }, signal, work)
    },
    ...(putIfAbsent && {
      async putIfAbsent(object, isRepeated, signal) {
        checkKey(object.key)
        const work = async () => {
          const stored = await putIfAbsent.call(target, object, isRepeated, signal)
          return stored && checkStored(stored, object.key)
        }
        return attempt({ id, what: { verb: 'store', key: object.key } }, signal, work)
      },
    }),
    ...(exists && {
      async exists(key, signal) {
        checkKey(key)
        const work = async () => exists.call(target, key, signal)
        return attempt({ id, what: { verb: 'look for', key } }, signal, work)
      },
    }),
    ...(remove && {
      async remove(key, signal) {
        checkKey(key)
        const work = async () => remove.call(target, key, signal)
        return attempt({ id, what: { verb: 'remove', key } }, signal, work)
      },
    }),
    ...(removeMany && {
      async removeMany(keys, signal) {
        for (const key of keys) checkKey(key)
        const work = async () => removeMany.call(target, keys, signal)
        const problems = await attempt({ id }, signal, work)
        const explain = (error: unknown, key: string) =>
          explainFailure(error, { id, what: { verb: 'remove', key } })
        return new Map([...problems].map(([key, error]) => [key, explain(error, key)]))
      },
    }),
    ...(sign && {
      async sign(key, method, mostS, signal) {
        checkKey(key)
        const work = async () => sign.call(target, key, method, mostS, signal)
        return attempt({ id, what: { verb: 'sign a link to', key } }, signal, work)
      },
    }),
    // No object can have an invalid key.
    ...(locate && {
      locate: async key => (faultOf(key) === undefined ? locate.call(target, key) : undefined),
    }),
  }
}

/** Explains failures, except after an abort: the caller that aborted knows the reason. */
async function attempt<T>(attempted: Attempted, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw signal.aborted ? error : explainFailure(error, attempted)
  }
}

/** Links are used on pages and in editors, so they must be http or https URLs, or files that this server serves. */
function checkStored(stored: Stored, key: string): Stored {
  const url: unknown = stored?.url
  if (
    typeof url === 'string' &&
    /^(?:https?:\/\/|files\/)/i.test(url) &&
    URL.canParse(url, 'http://localhost')
  )
    return stored
  const what = url === undefined ? 'no URL' : `${JSON.stringify(url).slice(0, 100)} as the URL`
  throw new UploadError(
    'delivery_failed',
    `The provider returned ${what} of "${key}" instead of an http or https URL.`,
  )
}
