import { access, constants, realpath, stat } from 'node:fs/promises'
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type ErrorCode, messageOf, systemCode, UploadError } from '../errors.ts'
import { ForeignName } from '../files/foreign-name.ts'
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
  /** Whether symlinks may lead anywhere. Default: for absolute names of the command line, which the user has typed. */
  readonly isTrusted?: boolean
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

/** The fault of empty standard input, usually because the command before the pipe failed. */
export const NOTHING_ON_STDIN =
  'standard input is empty. Check whether the previous command failed. To upload an empty file, give its name'

const MISSING = 'the file does not exist'

/** Whether a fault means that there is no such file or folder. */
export const isMissing = (fault: string | undefined) => fault?.startsWith(MISSING) ?? false

const NOT_REGULAR = 'it is not a regular file'

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
  if (options.isLiteral) return findNamed(names, options, context)
  const without = names.filter(isExclusion)
  const found = await findNamed(
    names.filter(name => !isExclusion(name)),
    options,
    context,
  )
  if (without.length === 0) return found
  const excluded = await findNamed(
    without.map(name => name.slice(1)),
    options,
    context,
  )
  const paths = new Set(excluded.map(({ path }) => path))
  return found.filter(({ kind, path }) => kind !== 'file' || !paths.has(path))
}

/** Not `!(a|b)`, which is a pattern. */
const isExclusion = (name: string) => /^!(?!\()/.test(name)

async function findNamed(
  names: readonly string[],
  options: EntryOptions,
  context: PathContext,
): Promise<Entry[]> {
  const entries: Entry[] = []
  const seen = new Set<string>()
  const add = async (
    name: string,
    path: string,
    root: string,
    { isFound, fence, inside }: { isFound: boolean; fence: string | undefined; inside?: string },
  ) => {
    if (isFound && seen.has(path)) return
    seen.add(path)
    const entry = await toEntry(name, path, { root, fence }, options, context)
    entries.push(inside === undefined ? entry : { ...entry, inside })
  }
  for (const name of names) {
    if (options.isLiteral && !options.isTrusted) {
      // As `./-` the name is also that of a file in the command line that repeats the upload.
      entries.push(await toListed(name === '-' ? './-' : name, options, context))
      continue
    }
    if (name === '-' || isWebAddress(name)) {
      entries.push({ kind: name === '-' ? 'stdin' : 'url', name, ...NOTHING, ...folderOf('.', options) })
      continue
    }
    const path = pathOf(name, context.cwd)
    const isWhole = isAbsolute(name) || /^file:/i.test(name)
    const fence = options.isTrusted || isWhole ? undefined : fenceOf(name, context.cwd)
    const status = await stat(path).catch(() => undefined)
    const wayOut = status?.isDirectory() && fence && (await findWayOut(path, await realpath(path), fence))
    if (wayOut) entries.push({ ...missing(name, path, wayOut), code: 'source_forbidden' })
    else if (status?.isDirectory()) {
      let isEmpty = true
      const fail = (folder: string) => {
        isEmpty = false
        entries.push(missing(join(name, relative(path, folder)), folder, "this folder can't be read"))
      }
      for await (const one of walk(path, fail)) {
        isEmpty = false
        await add(join(name, relative(path, one)), one, dirname(path), {
          isFound: true,
          fence: fence ?? path,
          inside: relative(path, one),
        })
      }
      if (isEmpty) entries.push(missing(name, path, NO_FILES.folder))
    } else if (status === undefined && !options.isLiteral && isPattern(name)) {
      // The root is the folder before the first segment that has a wildcard.
      const root = resolve(context.cwd, dirname(`${name.slice(0, name.search(MAGIC))}x`))
      const found = await matching(name, context)
      const isFound = true
      for (const one of found)
        await add(isAbsolute(name) ? one : relative(context.cwd, one), one, root, {
          isFound,
          fence: fence ?? fenceOf(name, context.cwd) ?? root,
        })
      if (found.length === 0) entries.push(missing(name, path, NO_FILES.pattern))
    } else await add(name, path, dirname(path), { isFound: false, fence })
  }
  return entries
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

const isPattern = (name: string) => MAGIC.test(name)

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

async function toEntry(
  name: string,
  path: string,
  { root, fence }: { root: string; fence: string | undefined },
  options: EntryOptions,
  { cwd, platform }: PathContext,
): Promise<Entry> {
  const inside = relative(cwd, path)
  const isBelow = !isAbsolute(inside) && inside.split(sep)[0] !== '..'
  const shown = isBelow ? inside : relative(root, path)
  return {
    kind: 'file',
    name,
    path,
    open: () => openNamed(path, fence),
    ...folderOf(dirname(shown), options),
    ...(await look(path, name, platform, fence)),
  }
}

/** An entry of a list. */
async function toListed(name: string, options: EntryOptions, { cwd, platform }: PathContext): Promise<Entry> {
  const advice = 'If you mean it, pass it as an argument'
  const foreign = new ForeignName(name, { folders: [cwd], advice })
  const path = resolve(cwd, name)
  const entry = { kind: 'file', name, path, size: 0, isListed: true, open: () => foreign.open() } as const
  try {
    const file = await foreign.open()
    await file.close()
    return { ...entry, size: file.status.size, ...folderOf(dirname(relative(cwd, path)), options) }
  } catch (error) {
    const { code, message } = error as UploadError
    const hint = systemCode((error as UploadError).cause) === 'ENOENT' ? hintFor(name, platform) : ''
    return { ...entry, fault: `${message}${hint}`, code }
  }
}

/**
 * Opens a file that the user has named.
 *
 * @param fence folder that symlinks must not lead out of
 * @throws UploadError
 */
export async function openNamed(path: string, fence?: string): Promise<HeldFile> {
  const file = await realpath(path).then(hold).catch(goneMeanwhile)
  try {
    if (!file.status.isFile()) throw new UploadError('source_failed', NOT_REGULAR)
    const wayOut = fence && (await findWayOut(path, file.real, fence))
    if (wayOut) throw new UploadError('source_forbidden', wayOut)
    return file
  } catch (error) {
    await file.close()
    throw error
  }
}

export function goneMeanwhile(): never {
  throw new UploadError('source_failed', 'the file was deleted or changed before it was sent')
}

/** @param folder of the file, as it is kept */
function folderOf(
  folder: string,
  { path = '', keepFolders = false, stripComponents = 0 }: EntryOptions,
): Pick<Entry, 'folder' | 'fault'> {
  const kept = keepFolders
    ? folder
        .split(sep)
        .filter(one => one !== '.')
        .slice(stripComponents)
    : []
  const whole = [path, ...kept].filter(one => one !== '').join('/')
  if (whole === '') return {}
  try {
    return { folder: readFolder(whole, '--path') }
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

/** The size of a file, and why it can't be sent. */
async function look(
  path: string,
  name: string,
  platform: NodeJS.Platform,
  fence: string | undefined,
): Promise<Pick<Entry, 'size' | 'fault' | 'code'>> {
  try {
    const status = await stat(path)
    const wayOut = fence && (await findWayOut(path, await realpath(path), fence))
    if (wayOut) return { size: 0, fault: wayOut, code: 'source_forbidden' }
    if (!status.isFile()) return { size: 0, fault: NOT_REGULAR }
    await access(path, constants.R_OK)
    return { size: status.size }
  } catch (error) {
    return { size: 0, fault: explain(error, name, platform) }
  }
}

function explain(error: unknown, name: string, platform: NodeJS.Platform): string {
  const code = systemCode(error)
  if (code === 'ENOENT' || code === 'ENOTDIR') return `${MISSING}${hintFor(name, platform)}`
  return code === 'EACCES' || code === 'EPERM' ? 'permission to read it was denied' : messageOf(error)
}

/** A hint for common errors in file names. */
function hintFor(name: string, platform: NodeJS.Platform): string {
  if (/^(["']).*\1$/s.test(name)) return '. Remove the quotes around the name'
  if (/^~[\\/]/.test(name)) return '. The shell replaces ~ only outside of quotes'
  if (/^(?:[a-z]:|\\)\\/i.test(name) && platform !== 'win32') return '. It is a Windows path'
  if (/^[a-z][a-z0-9+.-]+:\/\//i.test(name)) return '. URLs must begin with http:// or https://'
  return ''
}

/** The name of a file at the destination. */
export const fileNameOf = ({ fileName, path }: Entry) => fileName ?? basename(path)
