import { readFile } from 'node:fs/promises'
import type { ErrorCode } from '../errors.ts'
import type { PictureOptions } from './options.ts'

/** One picture, as it is given to the process that changes it. */
export interface PictureJob {
  /** The name it came with. */
  readonly name: string
  readonly contentType: string
  /** Bytes. */
  readonly size: number
  /** Path of the file that holds it, or its bytes when they are few (see payload/index.ts). */
  readonly input: string | Uint8Array
  readonly options: PictureOptions
}

/** How a job ended. */
export type PictureAnswer =
  /** There was nothing to do or to gain. */
  | { readonly is: 'same' }
  /** So many bytes follow on standard output. `extension`: of the new format, when it is another one. */
  | { readonly is: 'changed'; readonly size: number; readonly extension: string | undefined }
  /** The bytes are no such picture. */
  | { readonly is: 'unreadable'; readonly reason: string }
  /** An UploadError. */
  | { readonly is: 'failed'; readonly code: ErrorCode; readonly message: string }

/** What pictures are read by: the base class in libvips of the loader for each type. */
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
