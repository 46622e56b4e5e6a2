import { readFile } from 'node:fs/promises'
import type { ErrorCode } from '../errors.ts'
import type { Area, Dimensions } from '../payload/dimensions.ts'
import type { PictureOptions } from './options.ts'

/** One image, as it is sent to the process that changes it. */
export interface PictureJob {
  /** Original file name. */
  readonly name: string
  readonly contentType: string
  /** Bytes. */
  readonly size: number
  /** Path of its file, or its bytes if they are in memory (see payload/index.ts). */
  readonly input: string | Uint8Array
  readonly options: PictureOptions
}

/** Two images whose pixels are compared. */
export interface CompareJob {
  readonly before: PictureJob
  readonly after: PictureJob
  /** The difference is drawn if at least this share of the pixels has changed, 0 to 1. */
  readonly drawnFrom: number
  /** Parts that are not compared. */
  readonly masks: readonly Area[]
}

export interface Difference {
  /** Share of the pixels that have changed, 0 to 1. A pixel that only one image has counts as changed. */
  readonly share: number
  readonly before: Dimensions
  readonly after: Dimensions
  /** A PNG that shows the changed pixels. Undefined if no pixel has changed, or fewer than `drawnFrom`. */
  readonly image?: Uint8Array
}

/** What a job results in. */
export type PictureResult =
  /** The image stays unchanged. */
  | { readonly is: 'same' }
  /** `extension` is set if the format has changed. */
  | { readonly is: 'changed'; readonly bytes: Uint8Array; readonly extension?: string | undefined }
  | { readonly is: 'compared'; readonly difference: Difference }

/** The message of the process: a result, or why there is none. */
export type PictureAnswer =
  | PictureResult
  /** The bytes are not an image of this type. */
  | { readonly is: 'unreadable'; readonly reason: string }
  /** An UploadError. */
  | { readonly is: 'failed'; readonly code: ErrorCode; readonly message: string }

/** The base class of the libvips loader for each type. */
export const LOADERS: Readonly<Record<string, string>> = {
  'image/jpeg': 'VipsForeignLoadJpeg',
  'image/png': 'VipsForeignLoadPng',
  'image/webp': 'VipsForeignLoadWebp',
  'image/gif': 'VipsForeignLoadNsgif',
  'image/tiff': 'VipsForeignLoadTiff',
  'image/avif': 'VipsForeignLoadHeif',
  'image/heic': 'VipsForeignLoadHeif',
  'image/heif': 'VipsForeignLoadHeif',
  'image/heic-sequence': 'VipsForeignLoadHeif',
  'image/heif-sequence': 'VipsForeignLoadHeif',
}

export async function bytesOf({ input }: PictureJob): Promise<Buffer> {
  return typeof input === 'string'
    ? readFile(input)
    : Buffer.from(input.buffer, input.byteOffset, input.length)
}
