import type { Readable } from 'node:stream'
import { describeThrown, systemCode, UploadError } from '../errors.ts'
import type { HeldFile } from '../files/held.ts'
import { within } from '../flow/time-limit.ts'
import { isPassing } from '../http/network.ts'
import type { Outgoing } from '../http/proxy/outgoing.ts'
import type * as z from '../packages/zod.ts'
import type { Spool } from '../payload/spool.ts'

/** One stored thing on its way to a destination: a key and the bytes that belong to it. */
export interface UploadObject {
  /**
   * Path at the destination: `/`-separated, no leading slash, no empty, `.` or `..` segment, no control character, at most
   * 1024 bytes in UTF-8; any other Unicode. Checked before a target sees it.
   */
  readonly key: string
  /** Bytes. */
  readonly size: number
  /** MIME type found in the bytes; `application/octet-stream` when unknown. */
  readonly contentType: string
  /** SHA-256 of the bytes, hex. */
  readonly sha256: string
  /**
   * Where the bytes lie, when they lie in a private file: good for this process and those that it starts. Never changed;
   * who hard-links it shares bytes and mode with whoever else does.
   */
  readonly path?: string | undefined
  /** The whole body in pieces, without copying, when it is in memory. */
  chunks?(): readonly Uint8Array[] | undefined
  /** A fresh stream over the whole body at each call. */
  stream(): Readable
  /** The whole body. */
  bytes(): Promise<Buffer>
}

/** What a destination says of an object it has stored. */
export interface Stored {
  /** Absolute http(s) URL, or one relative to this server's public URL (`files/Default/a.png`). */
  url: string
  /** Address that removes the object when it is opened; where it takes another method, the page of the provider says so. */
  deleteUrl?: string
}

/** A server that proves with a key who it is, and whose key is not known. */
export interface Stranger {
  /** What it shows, in words. */
  readonly shown: string
  /** Trusts it from now on. */
  trust(): Promise<void>
}

/** Files in OpenSSH's format that say which host keys are right. */
export interface KnownHosts {
  /** Where the program adds those that it learns. */
  readonly kept: string
  /** Those of others, which are only read, with words for each. */
  readonly others: readonly { readonly path: string; readonly words: string }[]
}

/** An address that opens an object for a while. */
export interface SignedUrl {
  readonly url: string
  /** Seconds for which it works. */
  readonly forS: number
}

/** A provider with its options applied. What it cannot do it leaves out; callers test for the method. */
export interface Target {
  /** Stores the object, replacing one of the same key. Safe to call concurrently unless `serial`. */
  put(object: UploadObject, signal: AbortSignal): Promise<Stored>
  /** True: one put at a time. */
  readonly serial?: boolean
  /** On the destination's own file system: payloads are spooled there, so that `put` can link instead of copy. */
  readonly spool?: Spool
  /** Whether it names files by itself, so that equal keys replace nothing. */
  readonly namesFiles?: boolean
  /** The server at the other end, as long as nobody has said whether it is the right one. Nothing is sent to it. */
  meet?(signal: AbortSignal): Promise<Stranger | undefined>
  /** Verifies address and credentials; leaves nothing behind. */
  check?(signal: AbortSignal): Promise<void>
  /** Removes an object; used by `upload-server check` and the tests, never by a route. */
  remove?(key: string, signal: AbortSignal): Promise<void>
  /** Whether an object of that key is there; needed by `onConflict`, whose default is to ask. */
  exists?(key: string, signal: AbortSignal): Promise<boolean>
  /**
   * Makes an address that opens an object, whether it is there or not; needed by `link`.
   *
   * @param mostS seconds for which it may work at most
   */
  sign?(key: string, method: 'GET' | 'HEAD', mostS: number, signal: AbortSignal): Promise<SignedUrl>
  /** Whether the addresses that `put` gives end after a while: then `sign` makes others for what is stored already. */
  readonly linksEnd?: boolean
  /** Opens a stored object that this server may hand out under /files/; undefined when there is none. */
  locate?(key: string): Promise<HeldFile | undefined>
  close?(): Promise<void>
}

/** What a provider gets from the process around it. */
export interface ProviderDeps {
  /** Name of the configuration (`configName`). */
  readonly name: string
  /** A line for the operator; secrets are masked behind it. */
  warn(message: string): void
  /** Files and folders of the server itself; nothing may be stored over them, and nobody gets to see them. */
  readonly ownPaths?: readonly string[]
  /** Undefined: host keys are known by the configuration only. */
  readonly knownHosts?: KnownHosts | undefined
  /** Through which proxies it connects. Default: none. */
  readonly outgoing?: Outgoing | undefined
}

/** Kinds of providers, in the order in which `init` and the README list them; within one they go by their type. */
export const FAMILIES = ['folder', 'bucket', 'repository', 'server', 'host', 'other'] as const

/** A place where files may go, as a person thinks of it: what `init` offers and asks. */
export interface InitChoice {
  readonly label: string
  readonly hint?: string
  /** What need not be asked. */
  readonly options?: Readonly<Record<string, unknown>>
  /** Options that are asked for, in this order; with a question mark those that may stay empty. */
  readonly asks: readonly string[]
  /** Where credentials are made. */
  readonly where?: string
}

/** What people are told of a provider. `npm run generate` takes it into the README and its page. */
export interface About {
  readonly family: (typeof FAMILIES)[number]
  /** What it is, as a phrase in Markdown. */
  readonly what: string
  /** What its tests run against, as a phrase in Markdown. */
  readonly testedAgainst: string
  /** Configurations for its page, by their names; the first is the default. A secret is the name of a variable. */
  readonly example: Readonly<Record<string, Readonly<Record<string, unknown>>>>
  /** Whether its targets have `sign`, or the option that they need for that. Default: they have none. */
  readonly signs?: true | string
  /** At least one. */
  readonly choices: readonly InitChoice[]
}

/** A kind of destination. Plain objects made by `defineProvider`; see CONTRIBUTING.md for how to add one. */
export interface Provider<C extends z.ZodObject = z.ZodObject> {
  /** The name of its file or folder and of its export, the key under `providers` and the `picbed` of a request. */
  readonly type: string
  /** Every provider of `src/providers` has it. What `init` offers; a plugin without is used by its type alone. */
  readonly about?: About
  /** Options. Every one carries `.describe()`; secrets are made with `secret()`. */
  readonly config: C
  /** A sentence that says what is wrong with options that are valid one by one; undefined when nothing is. */
  validate?(config: z.output<C>): string | undefined
  /** Options of PicGo and PicList for this provider as ours; the notes name what is lost. */
  fromPicGo?(options: Record<string, unknown>): { options: Record<string, unknown>; notes: string[] }
  /** Connects nothing: the server starts although a destination is down. */
  open(config: z.output<C>, deps: ProviderDeps): Target | Promise<Target>
}

const defined = new WeakSet<object>()

/**
 * Keeps the type of the options while checking the shape of a provider; its targets get checked keys only.
 *
 * @throws Error when it has no `open`; its `open` does when that returns no target
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

/** Whether `defineProvider` made it, the one of this program and not of another copy. */
export function isDefined(provider: unknown): provider is Provider {
  return typeof provider === 'object' && provider !== null && defined.has(provider)
}

/** As in S3; leaves room for a folder in the 4096 bytes that Linux takes. */
const MAX_KEY_BYTES = 1024

/** Something that runs may be waited for. */
const LONGEST_CLOSE_MS = 30_000
const notClosed = () => new Error(`it was not closed within ${LONGEST_CLOSE_MS / 1000} s`)

const OPTIONAL_METHODS = ['meet', 'check', 'remove', 'exists', 'sign', 'locate', 'close'] as const

/** What others write may be in JavaScript. */
function checkTarget(target: Target): void {
  if (typeof target?.put !== 'function')
    throw new Error('its "open" must return an object with the function "put"')
  const wrong = OPTIONAL_METHODS.find(name => !['function', 'undefined'].includes(typeof target[name]))
  if (wrong !== undefined) throw new Error(`"${wrong}" of what its "open" returned is no function`)
}

/** A target that sees only keys as `UploadObject` describes them: `remove('')` would be about a whole bucket or folder. */
function withCheckedKeys(target: Target, label: string): Target {
  checkTarget(target)
  const { exists, remove, sign, locate, meet, check, close } = target
  return {
    ...target,
    // Those of a class are no members of its own.
    ...(meet && { meet: async signal => meet.call(target, signal) }),
    ...(check && { check: async signal => check.call(target, signal) }),
    ...(close && { close: async () => within(close.call(target), LONGEST_CLOSE_MS, notClosed) }),
    async put(object, signal) {
      checkKey(object.key)
      return checkStored(await target.put(object, signal), object.key)
    },
    ...(exists && {
      async exists(key, signal) {
        checkKey(key)
        return attempt(`${label} could not look for "${key}"`, signal, async () =>
          exists.call(target, key, signal),
        )
      },
    }),
    ...(remove && {
      async remove(key, signal) {
        checkKey(key)
        return attempt(`${label} could not remove "${key}"`, signal, async () =>
          remove.call(target, key, signal),
        )
      },
    }),
    ...(sign && {
      async sign(key, method, mostS, signal) {
        checkKey(key)
        const work = async () => sign.call(target, key, method, mostS, signal)
        return attempt(`${label} could not sign a link to "${key}"`, signal, work)
      },
    }),
    // Nothing lies under a key that no object can have.
    ...(locate && {
      locate: async key => (faultOf(key) === undefined ? locate.call(target, key) : undefined),
    }),
  }
}

/** Only an UploadError is a sentence for whoever uploads. `deliver` does the same for `put`. */
async function attempt<T>(what: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof UploadError || signal.aborted) throw error
    const code = systemCode(error)
    const reason = code ?? describeThrown(error).replace(/\.$/, '')
    throw new UploadError('delivery_failed', `${what}: ${reason}.`, {
      cause: error,
      retryable: isPassing(code),
    })
  }
}

function checkKey(key: string): void {
  const fault = faultOf(key)
  if (fault === undefined) return
  throw new UploadError(
    'delivery_failed',
    `${JSON.stringify(key.slice(0, 100))} cannot be stored: ${fault}. Change the key template or the name of the file.`,
  )
}

/** Links stand on pages and in editors, so they are addresses of the web, or of what this server hands out itself. */
function checkStored(stored: Stored, key: string): Stored {
  const url: unknown = stored?.url
  if (typeof url === 'string' && /^(?:https?:\/\/|files\/)/i.test(url)) return stored
  const what =
    url === undefined ? 'without an address' : `${JSON.stringify(url).slice(0, 100)} as the address`
  throw new UploadError(
    'delivery_failed',
    `The provider answered ${what} of "${key}", in place of one of http or https.`,
  )
}

function faultOf(key: string): string | undefined {
  if (Buffer.byteLength(key) > MAX_KEY_BYTES) return `it is longer than ${MAX_KEY_BYTES} bytes`
  if (/[\u0000-\u001f\u007f]/.test(key)) return 'it holds a control character'
  if (!key.isWellFormed()) return 'it holds half a character (a lone surrogate)'
  for (const name of key.split('/')) {
    if (name === '') return 'it is empty, starts or ends with "/", or has two in a row'
    if (name === '.' || name === '..') return `"${name}" is no name`
  }
  return undefined
}
