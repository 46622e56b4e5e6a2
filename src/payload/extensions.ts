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

const IMAGE = /^\.(?:a?png|jpe?g|jfif|gif|webp|avif|svg|bmp|ico|tiff?|hei[cf]|jxl)$/i
const OTHERS_THAN_PAGES = new RegExp(
  `^\\.(?:${[
    'psd|svgz|heics|mp4|m4v|mov|webm|mkv|avi|wmv|flv|mp3|m4a|aac|aiff?|og[agv]|opus|wav|flac|woff2?|ttf|otf',
    'pdf|epub|docx?|xlsx?|pptx?|od[tsp]|zip|gz|tgz|bz2|xz|zst|tar|7z|rar|jar|apk|ipa|dmg|iso|exe|msi|deb|rpm',
  ].join('|')})$`,
  'i',
)

/** Whether an extension, with its dot, is that of an image. */
export const isImageExtension = (extension: string) => IMAGE.test(extension)

/** Whether it is that of a file that is never a web page: an image, a style sheet, an archive. */
export const isNeverPage = (extension: string) =>
  IMAGE.test(extension) || OTHERS_THAN_PAGES.test(extension) || typeOfText(extension) !== undefined

/** Why a stored file with the extension of an image is not an image. Undefined for all others. */
export function findImageFault(
  fileName: string,
  { contentType, size }: { readonly contentType: string; readonly size: number },
): string | undefined {
  if (!isImageExtension(splitExtension(fileName)[1]) || contentType.startsWith('image/')) return undefined
  const fault = size === 0 ? 'but is empty' : `but is ${contentType} by its bytes, not an image`
  return `"${fileName}" was stored, ${fault}.`
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
