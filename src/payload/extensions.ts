import { splitExtension } from './file-name.ts'
import type { FileType } from './formats/file-type.ts'
import { typeOfText } from './text-types.ts'

/** Extensions of a type besides its usual one. */
const OTHERS: Readonly<Record<string, readonly string[]>> = {
  'image/jpeg': ['.jpeg', '.jpe', '.jfif'],
  'image/apng': ['.png'],
  'image/tiff': ['.tiff'],
  'image/heic': ['.heif', '.hif'],
  'image/heif': ['.heif', '.hif'],
  'image/heic-sequence': ['.heics', '.heif'],
  'image/heif-sequence': ['.heifs', '.heif'],
  'text/html': ['.htm'],
  'audio/mpeg': ['.mp2'],
  'audio/aiff': ['.aiff'],
  'audio/ogg': ['.oga', '.ogg', '.opus'],
  'audio/midi': ['.midi'],
  'audio/x-m4a': ['.mp4'],
  'video/mp4': ['.m4v'],
  'video/quicktime': ['.qt'],
  'video/mp2t': ['.ts', '.m2ts'],
  'video/mpeg': ['.mpeg', '.vob'],
  'video/x-ms-asf': ['.wmv', '.wma'],
  'application/gzip': ['.tgz'],
  'application/x-cfb': ['.doc', '.xls', '.ppt', '.msg'],
  'application/x-sqlite3': ['.db', '.sqlite3'],
}

/**
 * A file name whose extension belongs to the type of the bytes: its own one, or else the usual one of the type. A web
 * server that others run decides by the extension whether a file is a program.
 */
export function withFittingExtension(name: string, { contentType, extension }: FileType): string {
  const [base, own] = splitExtension(name)
  const lower = own.toLowerCase()
  const fits =
    lower === extension ||
    OTHERS[contentType]?.includes(lower) ||
    typeOfText(lower)?.contentType === contentType
  return fits && lower !== '' ? name : `${base}${extension || '.bin'}`
}
