import { Readable } from 'node:stream'
import { openPart } from '../api/part.ts'
import type { Entry } from '../entries.ts'
import type { FetchLink } from '../fetch-link.ts'
import { readAtMost } from '../read-at-most.ts'
import type { Result } from '../result.ts'
import type { Run } from './review.ts'

/** An image to compare. */
export interface Image {
  readonly result: Result
  /** Path below the folder of the images. Undefined if that folder is not known: then it ends the name. */
  readonly inside?: string | undefined
  /** A local file. Without it, the image is behind the link of the result. */
  readonly entry?: Entry
}

/** The earlier images of a comparison. */
export interface EarlierImages {
  /** What the user named. Undefined: there are none to compare with. */
  readonly name?: string
  /** The run that stored them. */
  readonly run?: Run
  readonly images: readonly Image[]
  /** Host of the list, which may have a private IP address, because the user has named it. */
  readonly host?: string
}

export const imagesOf = (entries: readonly Entry[]): Image[] =>
  entries.map(entry => ({ entry, inside: entry.inside, result: { name: entry.name } }))

/** Adds the hashes of local files. Files that can't be read have none. */
export async function hashImages(images: readonly Image[], signal: AbortSignal): Promise<readonly Image[]> {
  const hashed: Image[] = []
  // One at a time, because parallel reads are not faster on most disks. None after the signal.
  for (const image of images) {
    const { entry, result } = image
    const part = entry?.open && (await openPart(entry, NO_INPUT, signal).catch(() => undefined))
    await part?.close()
    const sha256 = part?.facts.sha256
    hashed.push(sha256 === undefined ? image : { ...image, result: { ...result, sha256 } })
  }
  return hashed
}

/** For entries that have a file. */
const NO_INPUT = { env: {}, stdin: Readable.from([]) }

/** The bytes of an image. @returns undefined if it can't be read, or a local file is larger than that. @throws UploadError */
export async function readImage(
  { entry, result: { url } }: Image,
  mostBytes: number,
  fetch: FetchLink,
  signal: AbortSignal,
): Promise<Uint8Array | undefined> {
  if (entry === undefined) return url === undefined ? undefined : fetch(url, mostBytes, signal)
  const { open, bytes } = entry
  if (bytes !== undefined) return bytes.length > mostBytes ? undefined : bytes
  const file = await open?.().catch(() => undefined)
  if (file === undefined) return undefined
  try {
    return await readAtMost(file.handle.createReadStream({ autoClose: false }), mostBytes)
  } finally {
    await file.close()
  }
}
