import { basename, dirname } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { describeFileError } from '../../errors.ts'
import { mapConcurrently } from '../../flow/map-concurrently.ts'
import { isAt } from '../../http/addresses.ts'
import type { Entry } from '../entries.ts'
import { INTERRUPTION } from '../result.ts'
import { findImage } from './find-image.ts'
import { imageRootOf } from './front-matter.ts'
import { createImageFinders, findRepository } from './image-files.ts'
import { type Note, readNote, replaceNote } from './note-file.ts'
import { findReferences, type Reference } from './references.ts'
import { type NewLink, rewrite, toDiff } from './rewrite.ts'
import { createVaults } from './vault.ts'

/** A note from the command line, or one in a folder from the command line. */
export interface NamedNote {
  /** Absolute path. */
  readonly path: string
  /** Folder in which its wiki links are looked up, unless it is in an Obsidian vault. */
  readonly folder: string
}

/** The URL of a stored image, or why it was not stored. */
export type StoredImage = { readonly url: string } | { readonly error: string }

export interface UploadImagesOptions {
  /** Hosts, with or without a port, whose images are moved. If empty, local images are uploaded. */
  readonly from: readonly string[]
  /** Further folders whose images notes may name. */
  readonly roots: readonly string[]
  readonly isDryRun: boolean
  readonly withBackup: boolean
  readonly signal: AbortSignal
  /** Uploads images. Returns one outcome for each, in order. */
  store(images: readonly Entry[]): Promise<readonly StoredImage[]>
  /** Called with the outcome of each note. */
  onNote(report: NoteReport): void
}

export interface NoteReport {
  readonly path: string
  /** Number of links that were replaced, or that would be in a dry run. */
  readonly links: number
  /** The changes as a diff, and the file or URL of each reference, in a dry run. */
  readonly diff?: string
  readonly images?: readonly { readonly line: number; readonly target: string; readonly image: string }[]
  readonly failures: readonly ImageFailure[]
}

interface ImageFailure {
  /** Line number, from 1. Undefined if the whole note failed. */
  readonly line?: number
  readonly target?: string
  readonly reason: string
}

/** Number of notes whose images are uploaded together. */
const TOGETHER = 32
/** Number of notes that are read in parallel. */
const SIDE_BY_SIDE = 4

/** Number of references after which the event loop handles other work. */
const REFERENCES_PER_TICK = 500

/** A reference and its image. The fragment, such as `#right`, stays in the link. */
interface WantedImage {
  readonly reference: Reference
  readonly image: Entry
  readonly fragment?: string | undefined
}

/** A note and the references in it. */
interface ReadNote {
  readonly path: string
  readonly note?: Note
  readonly wanted: readonly WantedImage[]
  readonly failures: ImageFailure[]
}

/** Uploads each image of the notes once and replaces the links. A note is written after its images have been stored. */
export async function uploadImages(notes: readonly NamedNote[], options: UploadImagesOptions): Promise<void> {
  const finderFor = createImageFinders()
  const repositoryOf = new Map<string, Promise<string | undefined>>()
  const vaultOf = createVaults(options.signal)
  const stored = new Map<string, StoredImage>()

  /** The folders whose images a note may name. */
  async function foldersOf(note: string, named: string, vaultRoot: string): Promise<[string, ...string[]]> {
    const folder = dirname(note)
    const repository = repositoryOf.get(folder) ?? findRepository(folder)
    repositoryOf.set(folder, repository)
    const others = new Set([named, vaultRoot, (await repository) ?? named, ...options.roots])
    others.delete(folder)
    return [folder, ...others]
  }

  async function look({ path, folder }: NamedNote): Promise<ReadNote> {
    const wanted: WantedImage[] = []
    const failures: ImageFailure[] = []
    try {
      const note = await readNote(path)
      const lineOf = createLineCount(note.text)
      const imageRoot = imageRootOf(note.text)
      const vault = await vaultOf(path, folder)
      const find = finderFor(await foldersOf(path, folder, vault.root))
      const references = mayNameImages(note.text) ? findReferences(note.text) : []
      for (const [index, reference] of references.entries()) {
        // Cached references never yield to the event loop, so without this Ctrl-C would have no effect.
        if (index % REFERENCES_PER_TICK === REFERENCES_PER_TICK - 1) await nextTurn()
        if (options.signal.aborted) break
        const fail = (reason: string) =>
          failures.push({ line: lineOf(reference.from), target: reference.target, reason })
        const found = await findImage(reference, path, vault, find, imageRoot)
        if (found?.is === 'address' && isAt(options.from, found.url))
          wanted.push({ reference, image: atUrl(found.url), fragment: found.fragment })
        if (options.from.length > 0) continue
        if (found?.is === 'missing') fail(found.reason)
        if (found?.is === 'file') wanted.push({ reference, image: found.entry, fragment: found.fragment })
      }
      return { path, note, wanted, failures }
    } catch (error) {
      return { path, wanted: [], failures: [{ reason: describeFileError(error) }] }
    }
  }

  async function finish({ path, note, wanted, failures }: ReadNote): Promise<NoteReport> {
    const links: NewLink[] = []
    const lineOf = createLineCount(note?.text ?? '')
    for (const { reference, image, fragment = '' } of wanted) {
      const result = stored.get(image.name)
      if (note === undefined || result === undefined) continue
      if ('url' in result) links.push({ reference, url: result.url + fragment })
      else failures.push({ line: lineOf(reference.from), target: reference.target, reason: result.error })
    }
    if (note === undefined || links.length === 0) return { path, links: 0, failures }
    const text = rewrite(note.text, links)
    if (options.isDryRun) {
      const lineOf = createLineCount(note.text)
      const images = wanted.map(({ reference, image }) => ({
        line: lineOf(reference.from),
        target: reference.target,
        image: image.name,
      }))
      return { path, links: links.length, diff: toDiff(note.text, text), images, failures }
    }
    try {
      await replaceNote(note, text, options.withBackup)
      return { path, links: links.length, failures }
    } catch (error) {
      return { path, links: 0, failures: [...failures, { reason: describeFileError(error) }] }
    }
  }

  for (let at = 0; at < notes.length && !options.signal.aborted; at += TOGETHER) {
    const seen = await mapConcurrently(notes.slice(at, at + TOGETHER), SIDE_BY_SIDE, look)
    if (options.signal.aborted) return
    const images = new Map(seen.flatMap(one => one.wanted.map(({ image }) => [image.name, image])))
    const missing = [...images.values()].filter(({ name }) => !stored.has(name))
    const results = options.isDryRun
      ? missing.map(image => ({ url: placeholderFor(image) }))
      : await options.store(missing)
    for (const [index, { name }] of missing.entries())
      stored.set(name, results[index] ?? { error: INTERRUPTION })
    for (const one of seen) options.onNote(await finish(one))
  }
}

const atUrl = (url: URL): Entry => ({ kind: 'url', name: url.href, path: '', size: 0 })

/** Most notes name none, and need no parser. */
const mayNameImages = (text: string) => text.includes('![') || /<(?:img|source)\b/i.test(text)

/** What a dry run shows for the link that it doesn't know. */
function placeholderFor({ kind, name, path }: Entry): string {
  const last = kind === 'url' ? new URL(name).pathname.split('/').at(-1) : encodeURIComponent(basename(path))
  return `https://…/${last}`
}

/** Finds the lines of positions that ascend. */
function createLineCount(text: string): (position: number) => number {
  let line = 1
  let at = 0
  return position => {
    for (let end = text.indexOf('\n', at); end !== -1 && end < position; end = text.indexOf('\n', at)) {
      at = end + 1
      line++
    }
    return line
  }
}
