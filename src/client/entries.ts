import { realpath, stat } from 'node:fs/promises'
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type ErrorCode, messageOf, systemCode, UploadError } from '../errors.ts'
import { ForeignName, type ForeignNameRules } from '../files/foreign-name.ts'
import { type HeldFile, hold } from '../files/held.ts'
import { fenceOf, findWayOut } from '../files/way-out.ts'
import { readFolder } from '../payload/folder.ts'
import type { Context } from './context.ts'
import { isWebAddress } from './reports/format.ts'
import { walk } from './walk.ts'

/** One file, URL or other source to upload. */
export interface Entry {
  readonly kind: 'file' | 'url' | 'stdin' | 'bytes' | 'clipboard'
  /** Name as typed, or as found in a folder or by a pattern. */
  readonly name: string
  /** Absolute path of a file. */
  readonly path: string
  /** The content, if `kind` is `bytes`. */
  readonly bytes?: Uint8Array
  /** Size of a file, bytes. */
  readonly size: number
  /** Name at the destination, if it differs from the local one. */
  readonly fileName?: string
  /** Folder at the destination: the `path` of a request. */
  readonly folder?: string
  /** Path below the folder that was named. Undefined for a file that was named itself, or by a pattern. */
  readonly inside?: string
  /** Opens a file, and checks what was opened, because it may have been replaced since it was found. @throws UploadError */
  readonly open?: () => Promise<HeldFile>
  /** Whether its name comes from a list. */
  readonly isListed?: boolean
  /** Why the entry can't be sent. */
  readonly fault?: string
  /** Code of the fault. Default: `source_failed`. */
  readonly code?: ErrorCode
}

export interface EntryOptions {
  /** Folder at the destination for all entries. */
  readonly path?: string
  /** Whether to keep the local folders of files. */
  readonly keepFolders?: boolean
  /** Number of folders that `keepFolders` drops, from the first on. */
  readonly stripComponents?: number
  /** Whether the names come from a list, which others may have written. They only name files in the working directory. */
  readonly isLiteral?: boolean
}

/** The context that relative names and patterns depend on. */
type PathContext = Pick<Context, 'cwd' | 'platform'>

const NOTHING = { path: '', size: 0 }
export const CLIPBOARD: Entry = { kind: 'clipboard', name: 'clipboard', ...NOTHING }

/** The entry of bytes that no file has. @param name at the destination */
export const entryOfBytes = (name: string, bytes: Uint8Array): Entry => ({
  kind: 'bytes',
  name,
  path: '',
  fileName: name,
  bytes,
  size: bytes.length,
})

/** The entry of a file that is fetched from a URL. */
export const entryOfUrl = (url: string): Entry => ({ kind: 'url', name: url, ...NOTHING })

/** The fault of empty standard input, usually because the command before the pipe failed. */
export const NOTHING_ON_STDIN =
  'standard input is empty. Check whether the previous command failed. To upload an empty file, give its name'

/** The fault of a file or folder that does not exist. */
export const MISSING = 'the file does not exist'

/** The faults that `--allow-empty` ignores. */
export const NO_FILES = { folder: 'the folder contains no files', pattern: 'no file matches the pattern' }

/**
 * Finds the entries that the arguments of a command name: files, folders, patterns, URLs and `-`. Keeps their order. A folder or
 * pattern does not add a file that is already in the list. A name that begins with `!` excludes what the rest of it names.
 */
export async function findEntries(
  names: readonly string[],
  options: EntryOptions,
  context: PathContext,
): Promise<Entry[]> {
  const entries: Entry[] = []
  const [seen, excluded] = [new Set<string>(), new Set<string>()]
  for (const typed of names) {
    // `!(a|b)` is a pattern.
    const isExclusion = !options.isLiteral && /^!(?!\()/.test(typed)
    const named = findNamed(isExclusion ? typed.slice(1) : typed, options, context)
    for await (const { isFound, ...entry } of named) {
      if (isExclusion) excluded.add(entry.path)
      else if (!isFound || !seen.has(entry.path)) entries.push(entry)
      if (!isExclusion) seen.add(entry.path)
    }
  }
  return entries.filter(({ kind, path }) => kind !== 'file' || !excluded.has(path))
}

/** What one name names. `isFound`: the file was not named itself, but is in a folder or matches a pattern. */
async function* findNamed(
  name: string,
  options: EntryOptions,
  context: PathContext,
): AsyncGenerator<Entry & { readonly isFound?: boolean }> {
  const { cwd } = context
  if (options.isLiteral) {
    // As `./-` the name is also that of a file in the command line that repeats the upload.
    yield await toListed(name === '-' ? './-' : name, options, context)
    return
  }
  if (name === '-' || isWebAddress(name)) {
    yield { ...entryOfUrl(name), ...(name === '-' && { kind: 'stdin' }), ...folderOf('.', options) }
    return
  }
  const path = pathOf(name, cwd)
  const fence = isAbsolute(name) || /^file:/i.test(name) ? undefined : fenceOf(name, cwd)
  const status = await stat(path).catch(() => undefined)
  if (status?.isDirectory()) {
    const wayOut = fence && (await findWayOut(path, await realpath(path), fence))
    const faults: Entry[] = wayOut ? [{ ...missing(name, path, wayOut), code: 'source_forbidden' }] : []
    const fail = (folder: string) =>
      void faults.push(missing(join(name, relative(path, folder)), folder, "this folder can't be read"))
    let isEmpty = true
    for await (const one of wayOut ? [] : walk(path, fail)) {
      isEmpty = false
      const inside = relative(path, one)
      const where = { root: dirname(path), fence: fence ?? path }
      yield { ...(await toEntry(join(name, inside), one, where, options, context)), inside, isFound: true }
    }
    yield* faults
    if (isEmpty && faults.length === 0) yield missing(name, path, NO_FILES.folder)
  } else if (status === undefined && MAGIC.test(name)) {
    // The root is the folder before the first segment that has a wildcard.
    const root = resolve(cwd, dirname(`${name.slice(0, name.search(MAGIC))}x`))
    const where = { root, fence: fence ?? fenceOf(name, cwd) ?? root }
    const found = await matching(name, context)
    for (const one of found) {
      const shown = isAbsolute(name) ? one : relative(cwd, one)
      yield { ...(await toEntry(shown, one, where, options, context)), isFound: true }
    }
    if (found.length === 0) yield missing(name, path, NO_FILES.pattern)
  } else yield await toEntry(name, path, { root: dirname(path), fence }, options, context)
}

const missing = (name: string, path: string, fault: string): Entry => ({
  kind: 'file',
  name,
  path,
  size: 0,
  fault,
})

/** Characters that make a name a pattern. */
const MAGIC = /[*?[{]|[!+@]\(/

/** Sorted files that match a pattern. It finds names with a leading dot and `node_modules` only if the pattern has them. */
async function matching(pattern: string, { cwd, platform }: PathContext): Promise<string[]> {
  const { glob } = await import('tinyglobby')
  const found = await glob(platform === 'win32' ? pattern.replaceAll('\\', '/') : pattern, {
    cwd,
    absolute: true,
    expandDirectories: false,
    followSymbolicLinks: false,
    ...(!pattern.includes('node_modules') && { ignore: '**/node_modules/**' }),
  })
  return found.map(path => resolve(path)).sort()
}

/** The entry of a file that a program names. */
export function entryOfFile(name: string, context: PathContext): Promise<Entry> {
  return toEntry(name, pathOf(name, context.cwd), { root: context.cwd, fence: undefined }, {}, context)
}

/** @param where the folder that the kept folders begin at elsewhere, and the one that symlinks must not lead out of */
async function toEntry(
  name: string,
  path: string,
  { root, fence }: { readonly root: string; readonly fence: string | undefined },
  options: EntryOptions,
  { cwd }: PathContext,
): Promise<Entry> {
  const inside = relative(cwd, path)
  const isBelow = !isAbsolute(inside) && inside.split(sep)[0] !== '..'
  const shown = isBelow ? inside : relative(root, path)
  const entry = { kind: 'file', name, path, open: () => openNamed(path, fence) } as const
  try {
    const file = await hold(await realpath(path))
    await file.close()
    await assertInside(file, path, fence)
    return { ...entry, size: file.status.size, ...folderOf(dirname(shown), options) }
  } catch (error) {
    return { ...entry, size: 0, ...faultOf(error) }
  }
}

/** An entry of a list. */
async function toListed(name: string, options: EntryOptions, { cwd }: PathContext): Promise<Entry> {
  const advice = 'If you mean it, pass it as an argument'
  const entry = await entryOfForeign(name, { folders: [cwd], advice })
  return { ...entry, isListed: true, ...folderOf(dirname(relative(cwd, entry.path)), options, entry.fault) }
}

/**
 * The entry of a file that others have named: the author of a list or a note, or an agent.
 *
 * @param check of each file that is opened, also later. It throws an UploadError to reject it
 */
export async function entryOfForeign(
  name: string,
  rules: ForeignNameRules,
  check = async (_: HeldFile) => {},
): Promise<Entry> {
  const foreign = new ForeignName(name, rules)
  const open = () => checked(foreign.open(), check)
  const entry = { kind: 'file', name, path: resolve(rules.folders[0], name), size: 0, open } as const
  try {
    const file = await open()
    await file.close()
    return { ...entry, size: file.status.size }
  } catch (error) {
    return { ...entry, ...faultOf(error) }
  }
}

/** An opened file that has passed a check. Otherwise, it is closed. */
async function checked(
  opening: Promise<HeldFile>,
  check: (file: HeldFile) => Promise<void>,
): Promise<HeldFile> {
  const file = await opening
  try {
    await check(file)
    return file
  } catch (error) {
    await file.close()
    throw error
  }
}

/**
 * Opens a file that the user has named.
 *
 * @param fence folder that symlinks must not lead out of
 * @throws UploadError
 */
export function openNamed(path: string, fence?: string): Promise<HeldFile> {
  const opening = realpath(path).then(hold).catch(goneMeanwhile)
  return checked(opening, file => assertInside(file, path, fence))
}

/** @throws UploadError for what is not a regular file, or is elsewhere */
async function assertInside({ status, real }: HeldFile, path: string, fence: string | undefined) {
  const wayOut = fence && (await findWayOut(path, real, fence))
  if (wayOut) throw new UploadError('source_forbidden', wayOut)
  if (status.isDirectory()) throw new UploadError('source_failed', 'it is a folder')
  if (!status.isFile()) throw new UploadError('source_failed', 'it is not a regular file')
}

export function goneMeanwhile(): never {
  throw new UploadError('source_failed', 'the file was deleted or changed before it was sent')
}

/**
 * @param folder of the file, as it is kept
 * @param fault of the entry, which is then the only one
 */
function folderOf(
  folder: string,
  { path = '', keepFolders = false, stripComponents = 0 }: EntryOptions,
  fault?: string,
): Pick<Entry, 'folder' | 'fault'> {
  const all = folder.split(sep).filter(one => one !== '.')
  const kept = keepFolders ? all.slice(stripComponents) : []
  const whole = [path, ...kept].filter(one => one !== '').join('/')
  try {
    return whole === '' || fault !== undefined ? {} : { folder: readFolder(whole, '--path') }
  } catch (error) {
    return { fault: messageOf(error) }
  }
}

/** Also accepts `file:` URLs, which some programs pass. */
function pathOf(name: string, cwd: string): string {
  try {
    return /^file:\/\//i.test(name) ? fileURLToPath(name) : resolve(cwd, name)
  } catch {
    return resolve(cwd, name) // A file: URL of another machine is not a local path.
  }
}

/** Why an entry can't be sent. */
function faultOf(error: unknown): Pick<Entry, 'fault' | 'code'> {
  if (error instanceof UploadError) return { fault: error.message, code: error.code }
  const code = systemCode(error)
  if (code === 'ENOENT' || code === 'ENOTDIR') return { fault: MISSING }
  const isDenied = code === 'EACCES' || code === 'EPERM'
  return { fault: isDenied ? 'permission to read it was denied' : messageOf(error) }
}

/** The name of a file at the destination. */
export const fileNameOf = ({ fileName, path }: Entry) => fileName ?? basename(path)
