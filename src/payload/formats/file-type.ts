/** The type of a file according to its bytes. */
export interface FileType {
  /** MIME type; `application/octet-stream` if it is unknown. */
  readonly contentType: string
  /** Its usual extension with the dot. Empty if it is unknown. */
  readonly extension: string
}

/** Makes a type. */
export const type = (contentType: string, extension: string): FileType => ({ contentType, extension })

/** Bytes as characters. */
export const text = (bytes: Buffer, from: number, length: number) =>
  bytes.toString('latin1', from, from + length)
