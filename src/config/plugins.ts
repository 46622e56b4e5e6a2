import { createHash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { describeThrown, systemCode } from '../errors.ts'
import { within } from '../flow/time-limit.ts'
import { isRecord, membersOf } from '../members.ts'
import * as z from '../packages/zod.ts'
import { isDefined, type Provider } from '../providers/contract.ts'
import type { Plugin } from '../providers/kit.ts'
import { canonicalType, PROVIDER_TYPES } from '../providers/registry.ts'
import { destinationSchema } from './destination.ts'
import { resolveLocalPath } from './paths.ts'
import type { OnProblem } from './problems.ts'

const LOADING_MS = 10_000

/** The providers of the plugins of a configuration. */
export interface Plugins {
  readonly providers: ReadonlyMap<string, Provider>
  /** The entry of the setting `plugins` that each provider comes from, by the type of the provider. */
  readonly origins: ReadonlyMap<string, string>
  /** Plugins that are files, which are reloaded when they change. */
  readonly files: readonly string[]
  /** The `node_modules` folders of plugins that are packages, including what these import. */
  readonly folders: readonly string[]
  /** False if a plugin could not be loaded. An unknown provider may then be one of its providers. */
  readonly isComplete: boolean
}

export const NO_PLUGINS: Plugins = {
  providers: new Map(),
  origins: new Map(),
  files: [],
  folders: [],
  isComplete: true,
}

/**
 * Loads the plugins of the setting `plugins`, which runs their code.
 *
 * @param base folder from which files and packages are resolved
 * @param report gets the errors
 * @param loadingMs time limit for each plugin, milliseconds
 */
export async function loadPlugins(
  names: unknown,
  base: string,
  report: OnProblem,
  loadingMs = LOADING_MS,
): Promise<Plugins> {
  if (!Array.isArray(names) || names.length === 0) return NO_PLUGINS
  const [providers, origins] = [new Map<string, Provider>(), new Map<string, string>()]
  const [files, folders]: [string[], string[]] = [[], []]
  let isComplete = true
  for (const [index, name] of names.entries()) {
    if (typeof name !== 'string' || name === '') continue // The schema reports it.
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
      report(`plugins[${index}]`, `could not load "${name}": ${describe(error, entryPoint?.file)}`)
    }
  }
  return { providers, origins, files, folders, isComplete }
}

/** The file of a plugin to import, and the `node_modules` folder if the plugin is a package. */
interface EntryPoint {
  readonly file: string
  readonly folder?: string
}

/** Whether a plugin is specified by its file path. */
export const isFile = (name: string) => /^(?:\.{0,2}[\\/]|~[\\/]|[a-z]:[\\/])/i.test(name)

/** Finds a package in `node_modules` of a folder or of one of its parents, as Node does. */
function findPackage(name: string, base: string): EntryPoint {
  const folders = createRequire(join(base, 'any.js')).resolve.paths(name) ?? []
  const folder = folders.find(one => existsSync(join(one, name, 'package.json')))
  if (folder === undefined)
    throw new Error(`the package is not installed. Run in ${base}: npm install ${name}`)
  const manifest = join(folder, name, 'package.json')
  const { exports, main = 'index.js' } = membersOf(JSON.parse(readFileSync(manifest, 'utf8')))
  const entry =
    exports === undefined ? main : choose(isRecord(exports) && '.' in exports ? exports['.'] : exports)
  if (typeof entry !== 'string') throw new Error(`${manifest} has no export that can be imported`)
  return { folder, file: join(folder, name, entry) }
}

/** Resolves `exports` by the conditions that apply to an import in Node. */
function choose(target: unknown): string | undefined {
  if (typeof target === 'string') return target
  if (!isRecord(target)) return undefined
  const names = Object.keys(target).filter(name =>
    ['node', 'import', 'module-sync', 'default'].includes(name),
  )
  return names.map(name => choose(target[name])).find(path => path !== undefined)
}

async function loadPlugin({ file, folder }: EntryPoint, loadingMs: number): Promise<readonly unknown[]> {
  const url = pathToFileURL(file)
  // Node caches modules by their URL, so a changed file needs a different URL.
  if (folder === undefined) url.searchParams.set('v', hashOf(readFileSync(file)))
  const load = async () => {
    const module: { default?: Plugin | { default?: Plugin } } = await import(url.href)
    // CommonJS compiled from TypeScript has the default export one level deeper.
    const plugin = typeof module.default === 'object' ? module.default.default : module.default
    if (typeof plugin !== 'function')
      throw new Error(
        `the default export of ${file} must be a function that gets the kit and returns providers`,
      )
    const { kit } = await import('../providers/kit.ts')
    return plugin(kit)
  }
  // Without a time limit, a plugin that never settles would let the process end without a message.
  const late = () => new Error(`it did not load within ${loadingMs / 1000} s`)
  const made: unknown = await within(load(), loadingMs, late)
  return Array.isArray(made) ? made : [made]
}

const hashOf = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex').slice(0, 16)

/** @throws Error with the reason why it is not a valid provider, or conflicts with another one */
function checkProvider(
  provider: unknown,
  others: ReadonlyMap<string, Provider>,
): asserts provider is Provider {
  if (!isDefined(provider)) throw new Error("its function must return what the kit's defineProvider made")
  const { type, config } = provider
  if (typeof type !== 'string' || !/^[a-z][a-z0-9]*(?:-[a-z0-9]+)*$/.test(type))
    throw new Error(`the type ${JSON.stringify(type)} must be lower-case letters, digits and hyphens`)
  if (others.has(type)) throw new Error(`another plugin already has a provider of the type "${type}"`)
  if (PROVIDER_TYPES.includes(canonicalType(type)))
    throw new Error(`upload-server already has a provider of the type "${type}"`)
  if (!(config instanceof z.ZodObject))
    throw new Error(`"config" of "${type}" must be made by the kit's z.object`)
  if (config._zod.def.checks?.length)
    throw new Error(`rules of "${type}" that concern several options belong in "validate", not in "config"`)
  const taken = Object.keys(config.shape).find(name => Object.hasOwn(destinationSchema.shape, name))
  if (taken !== undefined)
    throw new Error(
      `the option "${taken}" of "${type}" is reserved, because every destination has an option of that name`,
    )
}

function describe(error: unknown, file: string | undefined): string {
  const code = systemCode(error)
  if (code === 'ENOENT') return `the file ${file} does not exist`
  if (code === 'EISDIR') return `${file} is a folder. Specify the file in it, such as index.js`
  const where = error instanceof SyntaxError ? `. To find the line, run: node --check ${file}` : ''
  return `${describeThrown(error)}${where}`
}
