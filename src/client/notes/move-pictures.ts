import { basename } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { messageOf, systemCode } from '../../errors.ts'
import { mapConcurrently } from '../../flow/map-concurrently.ts'
import { INTERRUPTION } from '../result.ts'
import { findPicture, isPicture } from './find-picture.ts'
import { imageRootOf } from './front-matter.ts'
import { type Note, readNote, replaceNote } from './note-file.ts'
import { createNoteReader } from './reader.ts'
import type { Reference } from './references.ts'
import { type NewLink, rewrite, toDiff } from './rewrite.ts'
import { createVaults } from './vault.ts'

/** A note that was named, or that lies in a folder that was. */
export interface NamedNote {
  /** Absolute path. */
  readonly path: string
  /** Where its wiki links are looked up unless it lies in a vault of Obsidian. */
  readonly folder: string
}

/** The path of a file, or an address. */
export type Picture = string | URL

/** The link of a picture, or why there is none. */
export type StoredPicture = { readonly url: string } | { readonly error: string }

export interface MoveOptions {
  /** Hosts, with or without a port, whose pictures are moved; none: local files are. */
  readonly from: readonly string[]
  readonly isDryRun: boolean
  readonly withBackup: boolean
  readonly signal: AbortSignal
  /** Uploads pictures; an answer for each, in order. */
  store(pictures: readonly Picture[]): Promise<readonly StoredPicture[]>
  /** Hears what became of each note. */
  onNote(report: NoteReport): void
}

export interface NoteReport {
  readonly path: string
  /** Links that were put in, or would be. */
  readonly links: number
  /** The hunks of what would change, of a dry run. */
  readonly diff?: string
  readonly failures: readonly PictureFailure[]
}

interface PictureFailure {
  /** 1 is the first; undefined: the whole note. */
  readonly line?: number
  readonly target?: string
  readonly reason: string
}

/** Notes whose pictures are uploaded together. */
const TOGETHER = 32
/** Notes that are read at a time. */
const SIDE_BY_SIDE = 4

/** References after which everything else has its turn. */
const TURN = 500

/** A note that was looked at. */
interface Seen {
  readonly path: string
  readonly note?: Note
  readonly wanted: readonly { readonly reference: Reference; readonly picture: Picture }[]
  readonly failures: PictureFailure[]
}

/** Uploads the pictures of notes, each once, and puts their links in. A note is written when its pictures are stored. */
export async function movePictures(notes: readonly NamedNote[], options: MoveOptions): Promise<void> {
  const reader = createNoteReader(options.signal)
  const vaultOf = createVaults(options.signal)
  const stored = new Map<string, StoredPicture>()
  const faults = new Map<string, Promise<string | undefined>>()

  /** Each picture is looked at once, however many notes name it. */
  function faultOf(path: string): Promise<string | undefined> {
    const known = faults.get(path) ?? findFault(path)
    faults.set(path, known)
    return known
  }

  async function look({ path, folder }: NamedNote): Promise<Seen> {
    const wanted: { reference: Reference; picture: Picture }[] = []
    const failures: PictureFailure[] = []
    try {
      const note = await readNote(path)
      const lineOf = createLineCount(note.text)
      const imageRoot = imageRootOf(note.text)
      const vault = await vaultOf(path, folder)
      const references = mayNamePictures(note.text) ? await reader.read(note.text) : []
      for (const [index, reference] of references.entries()) {
        // What is known already takes no turn of the event loop, in which Ctrl-C would be heard.
        if (index % TURN === TURN - 1) await nextTurn()
        if (options.signal.aborted) break
        const fail = (reason: string) =>
          failures.push({ line: lineOf(reference.from), target: reference.target, reason })
        const found = await findPicture(reference, path, vault, imageRoot)
        if (found?.is === 'address' && isOneOf(options.from, found.url))
          wanted.push({ reference, picture: found.url })
        if (options.from.length > 0) continue
        if (found?.is === 'missing') fail(found.reason)
        if (found?.is !== 'file') continue
        const fault = await faultOf(found.path)
        if (fault === undefined) wanted.push({ reference, picture: found.path })
        else fail(fault)
      }
      return { path, note, wanted, failures }
    } catch (error) {
      return { path, wanted: [], failures: [{ reason: describe(error) }] }
    }
  }

  async function finish({ path, note, wanted, failures }: Seen): Promise<NoteReport> {
    const links: NewLink[] = []
    const lineOf = createLineCount(note?.text ?? '')
    for (const { reference, picture } of wanted) {
      const result = stored.get(String(picture))
      if (note === undefined || result === undefined) continue
      if ('url' in result) links.push({ reference, url: result.url })
      else failures.push({ line: lineOf(reference.from), target: reference.target, reason: result.error })
    }
    if (note === undefined || links.length === 0) return { path, links: 0, failures }
    const text = rewrite(note.text, links)
    if (options.isDryRun) return { path, links: links.length, diff: toDiff(note.text, text), failures }
    try {
      await replaceNote(note, text, options.withBackup)
      return { path, links: links.length, failures }
    } catch (error) {
      return { path, links: 0, failures: [...failures, { reason: describe(error) }] }
    }
  }

  try {
    for (let at = 0; at < notes.length && !options.signal.aborted; at += TOGETHER) {
      const seen = await mapConcurrently(notes.slice(at, at + TOGETHER), SIDE_BY_SIDE, look)
      if (options.signal.aborted) return
      const pictures = new Map(
        seen.flatMap(one => one.wanted.map(({ picture }) => [String(picture), picture])),
      )
      const missing = [...pictures].filter(([name]) => !stored.has(name))
      const results = options.isDryRun
        ? missing.map(([, picture]) => ({ url: placeholderFor(picture) }))
        : await options.store(missing.map(([, picture]) => picture))
      for (const [index, [name]] of missing.entries())
        stored.set(name, results[index] ?? { error: INTERRUPTION })
      for (const one of seen) options.onNote(await finish(one))
    }
  } finally {
    await reader.close()
  }
}

/** Most notes name none, and need no parser. */
const mayNamePictures = (text: string) => text.includes('![') || /<img\b/i.test(text)

/** What a dry run shows for the link that it doesn't know. */
function placeholderFor(picture: Picture): string {
  const name = typeof picture === 'string' ? basename(picture) : (picture.pathname.split('/').at(-1) ?? '')
  return `https://…/${typeof picture === 'string' ? encodeURIComponent(name) : name}`
}

function isOneOf(hosts: readonly string[], { host, hostname }: URL): boolean {
  return hosts.includes(host) || hosts.includes(hostname)
}

async function findFault(path: string): Promise<string | undefined> {
  try {
    return (await isPicture(path)) ? undefined : 'it is not an image'
  } catch (error) {
    return describe(error)
  }
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

function describe(error: unknown): string {
  const code = systemCode(error)
  if (code === 'ENOENT') return 'the file does not exist'
  if (code === 'EACCES' || code === 'EPERM') return 'permission to read and write it was denied'
  if (code === 'EROFS') return 'it is on a read-only file system'
  return messageOf(error)
}
