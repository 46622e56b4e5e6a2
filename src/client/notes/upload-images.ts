import { basename, dirname } from 'node:path'
import { describeFileError } from '../../errors.ts'
import { mapConcurrently } from '../../flow/map-concurrently.ts'
import type { Entry } from '../entries.ts'
import { INTERRUPTION } from '../result.ts'
import { findAddress, findFile, type Surroundings } from './find-image.ts'
import { imageRootOf } from './front-matter.ts'
import { type Note, readNote, replaceNote } from './note-file.ts'
import { findReferences, type Reference } from './references.ts'
import { rewrite, toDiff } from './rewrite.ts'
import { createVaults, findRepository } from './vault.ts'

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

/** A note and the references in it. */
interface ReadNote {
  readonly path: string
  readonly note?: Note
  readonly wanted: readonly {
    readonly reference: Reference
    readonly image: Entry
    readonly fragment?: string
  }[]
  readonly failures: ImageFailure[]
}

/** Uploads each image of the notes once and replaces the links. A note is written after its images have been stored. */
export async function uploadImages(notes: readonly NamedNote[], options: UploadImagesOptions): Promise<void> {
  const { from, roots, signal, isDryRun } = options
  const vaultOf = createVaults(signal)
  const stored = new Map<string, StoredImage>()

  async function look({ path, folder }: NamedNote): Promise<ReadNote> {
    const wanted: ReadNote['wanted'][number][] = []
    const failures: ImageFailure[] = []
    try {
      const note = await readNote(path)
      const vault = await vaultOf(path, folder)
      const repository = await findRepository(dirname(path))
      const others = new Set([
        folder,
        vault.root,
        ...(repository === undefined ? [] : [repository]),
        ...roots,
      ])
      others.delete(dirname(path))
      const imageRoot = imageRootOf(note.text)
      const around: Surroundings = { folders: [dirname(path), ...others], vault, imageRoot }
      for (const reference of mayNameImages(note.text) ? findReferences(note.text) : []) {
        if (signal.aborted) break
        const found = from.length > 0 ? findAddress(reference, from) : await findFile(reference, around)
        if (found?.image) wanted.push({ reference, ...found })
        else if (found) failures.push(failureAt(reference, found.reason))
      }
      return { path, note, wanted, failures }
    } catch (error) {
      return { path, wanted: [], failures: [{ reason: describeFileError(error) }] }
    }
  }

  async function finish({ path, note, wanted, failures }: ReadNote): Promise<NoteReport> {
    const links = wanted.flatMap(({ reference, image, fragment = '' }) => {
      const result = stored.get(image.name) ?? { error: INTERRUPTION }
      if ('url' in result) return { reference, url: result.url + fragment }
      failures.push(failureAt(reference, result.error))
      return []
    })
    if (note === undefined || links.length === 0) return { path, links: 0, failures }
    const text = rewrite(note.text, links)
    if (isDryRun) {
      const images = wanted.map(({ reference: { line, target }, image: { name } }) => ({
        ...{ line, target, image: name },
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

  for (let at = 0; at < notes.length && !signal.aborted; at += TOGETHER) {
    const seen = await mapConcurrently(notes.slice(at, at + TOGETHER), SIDE_BY_SIDE, look)
    if (signal.aborted) return
    const images = new Map(seen.flatMap(one => one.wanted.map(({ image }) => [image.name, image])))
    const missing = [...images.values()].filter(({ name }) => !stored.has(name))
    const results = isDryRun
      ? missing.map(image => ({ url: placeholderFor(image) }))
      : await options.store(missing)
    for (const [index, { name }] of missing.entries())
      stored.set(name, results[index] ?? { error: INTERRUPTION })
    for (const one of seen) options.onNote(await finish(one))
  }
}

const failureAt = ({ line, target }: Reference, reason: string): ImageFailure => ({ line, target, reason })

/** Most notes name none, and need no parser. */
const mayNameImages = (text: string) => text.includes('![') || /<(?:img|source)\b/i.test(text)

/** What a dry run shows for the link that it doesn't know. */
function placeholderFor({ kind, name, path }: Entry): string {
  const last = kind === 'url' ? new URL(name).pathname.split('/').at(-1) : encodeURIComponent(basename(path))
  return `https://…/${last}`
}
