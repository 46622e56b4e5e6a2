/** Bytes that a clean file can have more than its original, such as the last byte of a GIF. */
const SPARE_BYTES = 256

/** The kept parts of a file, in one piece of memory: a file can consist of a million tiny parts. */
export class Output {
  readonly bytes: Buffer
  length = 0

  /** @param most bytes */
  constructor(most: number) {
    this.bytes = Buffer.allocUnsafe(most + SPARE_BYTES)
  }

  /** @throws RangeError if there are more bytes than expected, because parts of the file overlap */
  add(part: Uint8Array): void {
    this.bytes.set(part, this.length)
    this.length += part.length
  }

  /** @throws RangeError if the file ends before the part */
  copy(file: Buffer, from: number, to: number): void {
    if (to > file.length) throw new RangeError()
    this.add(file.subarray(from, to))
  }

  finish(): Buffer {
    return this.bytes.subarray(0, this.length)
  }
}
