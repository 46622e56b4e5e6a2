import { type ConnectionSettings, type Connections, createConnections } from '../http/connections.ts'
import { createGrowingMask } from '../mask.ts'
import { collectMarked } from '../options.ts'
import type * as z from '../packages/zod.ts'
import { toCheckedTarget } from './shared/checked-target.ts'
import type { PicGoOptions } from './shared/picgo-options.ts'
import type { KnownHosts, OpenTarget } from './shared/target.ts'

export type * from './shared/target.ts'

/** What the server opens a destination with. */
export interface ProviderDeps extends ConnectionSettings {
  /** Name of the destination (`configName`). */
  readonly name: string
  /** Logs a warning for the operator. Secrets are masked. */
  warn(message: string): void
  /** Also masks these credentials in the log. */
  learn?(credentials: readonly string[]): void
  /** Files and folders of the server itself. They must never be overwritten or served. */
  readonly ownPaths?: readonly string[]
  /** If undefined, host keys are trusted by the configuration only. */
  readonly knownHosts?: KnownHosts | undefined
  /** Working directory of started programs. It must not be a folder that another user can create. Default: the root. */
  readonly programFolder?: string | undefined
}

/** What a provider gets. The server owns its connections: proxy, certificates and time limits are applied, and it closes them. */
export interface Context extends ProviderDeps, Omit<Connections, 'close' | 'exchange'> {
  /** Masks the secrets of the options, as in every message. What is cut must be masked before. */
  mask(text: string): string
  /** Also masks credentials that were created or read at run time: those of a session, a role or a file. */
  learn(credentials: readonly string[]): void
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

/** Description of a provider for people. `npm run generate` copies it into the README. */
export interface About {
  readonly family: (typeof FAMILIES)[number]
  /** What the provider is, as a phrase in Markdown. */
  readonly what: string
  /** What its tests run against, as a phrase in Markdown. Default: a mock of the documented API. */
  readonly testedAgainst?: string
  /** True if its targets have `sign`, or the name of the option that `sign` needs. Default: no `sign`. */
  readonly signs?: true | string
  /** At least one. */
  readonly choices: readonly InitChoice[]
}

/**
 * A type of destination: a plain object made by `defineProvider`. CONTRIBUTING.md describes how to add one.
 *
 * @typeParam D what it is opened with: what the server has, or what `defineProvider` makes of that
 */
export interface Provider<C extends z.ZodObject = z.ZodObject, D = ProviderDeps> {
  /** Name of its export. Also its name under `providers` and in the `picbed` of a request. */
  readonly type: string
  /** Required for every provider in `src/providers`. `init` does not offer a plugin without it. */
  readonly about?: About
  /** Options. Each one has a `.describe()`. Secrets are made with `secret()`. */
  readonly config: C
  /** Returns a sentence about options that are valid alone but not together, or undefined if all are valid. */
  validate?(config: z.output<C>): string | undefined
  /** Defaults of options with `"link": "redirect"`, because the bucket is private then. */
  readonly redirected?: Readonly<Record<string, unknown>>
  /** False if it opens no connections itself, so that its destinations have no `caFile` and no `insecureTls`. */
  readonly connects?: false
  /** Translates options of PicGo and PicList. Undefined members of the result are omitted. */
  picgo?(old: PicGoOptions): Record<string, unknown>
  /** Must not connect, so that the server starts although a destination is down. */
  open(config: z.output<C>, deps: D): OpenTarget | Promise<OpenTarget>
}

const defined = new WeakSet<object>()

/**
 * Checks the shape of a provider and keeps the type of its options. Its targets get only valid object keys.
 *
 * @throws Error if it has no `open`. Its `open` throws if it returns an invalid target
 */
export function defineProvider<C extends z.ZodObject>(provider: Provider<C, Context>): Provider<C> {
  if (typeof provider.open !== 'function') throw new Error(`"open" of "${provider.type}" must be a function`)
  const result: Provider<C> = {
    ...provider,
    open(config, deps) {
      const id = `${provider.type}/${deps.name}`
      if (deps.insecureTls)
        deps.warn(`${id}: "insecureTls" disables certificate verification. Use "caFile" instead.`)
      const { mask, learn } = createGrowingMask()
      learn(collectMarked(provider.config, config, 'secret'))
      const { close, exchange: _, ...connections } = createConnections(deps)
      const opened = provider.open(config, {
        ...deps,
        ...connections,
        mask,
        learn(credentials) {
          mask.learn?.(credentials)
          deps.learn?.(credentials)
        },
      })
      const check = (target: OpenTarget) => toCheckedTarget(target, id, close, mask)
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
