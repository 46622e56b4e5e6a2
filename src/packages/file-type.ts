/** What is used of file-type. The build puts it into this one module: by itself file-type loads 45 files. */
import { FileTypeParser, type FileTypeResult } from 'file-type/core'

interface Place {
  readonly offset?: number
  readonly mask?: unknown
  readonly encoding?: unknown
}

/** Members of the parser that its types omit. The build contains the version in package-lock.json, so they can't change. */
interface Comparing {
  readonly buffer: Uint8Array
  check(bytes: ArrayLike<number>, place?: Place): boolean
  checkString(text: string, place?: Place): boolean
}

const Base = FileTypeParser as unknown as new () => FileTypeParser & Comparing

/**
 * Compares without copies. file-type compares a file of unknown type with many texts and makes an array of each, which
 * takes 20 KB of memory and twice the time.
 */
class Parser extends Base {
  override check(bytes: ArrayLike<number>, place: Place = {}): boolean {
    if (place.mask) return super.check(bytes, place)
    const { buffer } = this
    const { offset = 0 } = place
    for (let n = 0; n < bytes.length; n++) if (buffer[offset + n] !== bytes[n]) return false
    return true
  }

  override checkString(text: string, place: Place = {}): boolean {
    if (place.mask || place.encoding) return super.checkString(text, place)
    const { buffer } = this
    const { offset = 0 } = place
    for (let n = 0; n < text.length; n++) if (buffer[offset + n] !== text.charCodeAt(n)) return false
    return true
  }
}

/** The same as the function of file-type. */
export function fileTypeFromBuffer(head: Uint8Array): Promise<FileTypeResult | undefined> {
  return new Parser().fromBuffer(head)
}
