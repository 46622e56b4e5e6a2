import { createHash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { describeThrown, systemCode } from '../errors.ts'
import { within } from '../flow/time-limit.ts'
import * as z from '../packages/zod.ts'
import { isDefined, type Provider } from '../providers/contract.ts'
import type { Plugin } from '../providers/kit.ts'
import { canonicalType, PROVIDER_TYPES } from '../providers/registry.ts'
import { destinationSchema } from './destination.ts'
import type { Report } from './interpolate.ts'
import { isRecord } from './json.ts'
import { resolveLocalPath } from './paths.ts'

const LOADING_MS = 10_000

/** Providers that a configuration brings along. */
export interface Plugins {
  readonly providers: ReadonlyMap<string, Provider>
  /** What the setting names them by, for each type. */
  readonly origins: ReadonlyMap<string, string>
  /** Plugins that are files of the operator's own: read again when they change. */
  readonly files: readonly string[]
  /** The `node_modules` of packages: what they import lies there, too. */
  readonly folders: readonly string[]
  /** False when one could not be loaded: a type that is unknown may be one of its. */
  readonly isComplete: boolean
}

export const NO_PLUGINS: Plugins = {
  ...{ providers: new Map(), origins: new Map() },
  ...{ files: [], folders: [], isComplete: true },
}

/**
 * Loads what the setting `plugins` names, which runs it.
 *
 * @param base folder that files and packages are looked for from
 * @param report gets what is wrong with each
 * @param loadingMs how long each may take
 */
export async function loadPlugins(
  names: unknown,
  base: string,
  report: Report,
  loadingMs = LOADING_MS,
): Promise<Plugins> {
  if (!Array.isArray(names) || names.length === 0) return NO_PLUGINS
  const [providers, origins] = [new Map<string, Provider>(), new Map<string, string>()]
  const [files, folders]: [string[], string[]] = [[], []]
  let isComplete = true
  for (const [index, name] of names.entries()) {
    if (typeof name !== 'string' || name === '') continue // the schema says so
    let entryPoint: EntryPoint | undefined
    try {
      entryPoint = isFile(name) ? { file: resolveLocalPath(name, base) } : findPackage(name, base)
      if (entryPoint.folder === undefined) files.push(entryPoint.file)
      else folders.push(entryPoint.folder)
      for (const provider of await loadPlugin(entryPoint, loadingMs)) {
        checkProvider(provider, providers)
        providers.set(provider.type, provider)
        origins.set(provider.type, name)
      }
    } catch (error) {
      isComplete = false
      report(`plugins[${index}]`, `"${name}" can't be used: ${describe(error, entryPoint)}`)
    }
  }
  return { providers, origins, files, folders, isComplete }
}

/** Where a plugin begins, and the `node_modules` around it when it is a package. */
interface EntryPoint {
  readonly file: string
  readonly folder?: string
  /** Versions of upload-server that the package says it is made for. */
  readonly madeFor?: string | undefined
}

/** Whether a plugin is named by its path. */
export const isFile = (name: string) => /^(?:\.{0,2}[\\/]|~[\\/]|[a-z]:[\\/])/i.test(name)

/** In `node_modules` of a folder or of one around it, as Node finds packages. */
function findPackage(name: string, base: string): EntryPoint {
  for (let around = base; ; around = dirname(around)) {
    const folder = join(around, 'node_modules')
    const manifest = join(folder, name, 'package.json')
    if (existsSync(manifest)) {
      const { entry, madeFor } = readManifest(manifest)
      return { folder, file: join(folder, name, entry), madeFor }
    }
    if (dirname(around) !== around) continue
    throw new Error(`there is no package of that name. In ${base} run: npm install ${name}`)
  }
}

function readManifest(manifest: string): { entry: string; madeFor: string | undefined } {
  const { exports, main, peerDependencies } = JSON.parse(readFileSync(manifest, 'utf8')) as Record<
    string,
    unknown
  >
  const wanted = isRecord(peerDependencies) ? peerDependencies['upload-server'] : undefined
  const root = isRecord(exports) && '.' in exports ? exports['.'] : exports
  const entry = exports === undefined ? (main ?? 'index.js') : choose(root)
  if (typeof entry === 'string') return { entry, madeFor: wanted === undefined ? undefined : String(wanted) }
  throw new Error(`${manifest} exports nothing that can be imported`)
}

/** By the conditions that hold for an import in Node. */
function choose(target: unknown): string | undefined {
  if (typeof target === 'string') return target
  if (!isRecord(target)) return undefined
  const names = Object.keys(target).filter(name =>
    ['node', 'import', 'module-sync', 'default'].includes(name),
  )
  return names.map(name => choose(target[name])).find(path => path !== undefined)
}

async function loadPlugin({ file, folder }: EntryPoint, loadingMs: number): Promise<readonly Provider[]> {
  const url = pathToFileURL(file)
  // Node keeps what it has imported by its address, so one that has changed needs another.
  if (folder === undefined) url.searchParams.set('v', hashOf(readFileSync(file)))
  const load = async () => {
    const module = (await import(url.href)) as { default?: Plugin | { default?: Plugin } }
    // TypeScript's CommonJS has it one deeper.
    const plugin = typeof module.default === 'object' ? module.default.default : module.default
    if (typeof plugin !== 'function')
      throw new Error(`${file} must export a function by default, which gets the kit and returns providers`)
    const { kit } = await import('../providers/kit.ts')
    return plugin(kit)
  }
  // One that waits for something that never comes would have the program end without a word.
  const late = () => new Error(`it was not loaded within ${loadingMs / 1000} s`)
  const made: unknown = await within(load(), loadingMs, late)
  return (Array.isArray(made) ? made : [made]) as Provider[]
}

const hashOf = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex').slice(0, 16)

/** @throws Error that says why it is none, or none beside the others */
function checkProvider(provider: Provider, others: ReadonlyMap<string, Provider>): void {
  if (!isDefined(provider)) throw new Error("its function must return what the kit's defineProvider made")
  const { type, config } = provider
  if (typeof type !== 'string' || !/^[a-z][a-z0-9]*(?:-[a-z0-9]+)*$/.test(type))
    throw new Error(`the type ${JSON.stringify(type)} must be lower-case letters, digits and hyphens`)
  if (others.has(type)) throw new Error(`an earlier plugin has a provider of the type "${type}"`)
  if (PROVIDER_TYPES.includes(canonicalType(type)))
    throw new Error(`upload-server has a provider of the type "${type}" itself`)
  if (!(config instanceof z.ZodObject))
    throw new Error(`"config" of "${type}" must be made by the kit's z.object`)
  if (config._zod.def.checks?.length)
    throw new Error(`rules of "${type}" over several options belong into its "validate", not into "config"`)
  const taken = Object.keys(config.shape).find(name => Object.hasOwn(destinationSchema.shape, name))
  if (taken !== undefined)
    throw new Error(`the option "${taken}" of "${type}" is one that every destination has`)
}

function ownVersion(): unknown {
  return JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')).version
}

function describe(error: unknown, entryPoint: EntryPoint | undefined): string {
  const { file, madeFor } = entryPoint ?? {}
  if (!(error instanceof Error)) return describeThrown(error)
  const code = systemCode(error)
  if (code === 'ENOENT') return `${file} is not there`
  if (code === 'EISDIR') return `${file} is a folder: name the file in it, such as index.js`
  const where = error instanceof SyntaxError ? `. node --check ${file} may say in which line` : ''
  const versions = madeFor ? `. It is made for upload-server ${madeFor}, and this is ${ownVersion()}` : ''
  return `${describeThrown(error)}${where}${versions}`
}
