import { UploadError } from '../../errors.ts'
import { percentDecode } from '../../http/percent-decode.ts'

/** Maximum length of the media type with its parameters, in characters. */
const MAX_HEAD = 1000

/**
 * The bytes of a `data:` URI (RFC 2397). The media type and its parameters are ignored: the type is read from the bytes.
 * Base64 may use either alphabet, with white space and with or without its padding. A `#` belongs to the data, because
 * SVG images often contain it.
 *
 * @throws UploadError `invalid_request`
 */
export function decodeDataUri(uri: string): { bytes: Buffer } {
  const comma = uri.indexOf(',')
  if (comma < 0 || comma > MAX_HEAD || !/^data:/i.test(uri)) {
    throw new UploadError(
      'invalid_request',
      `"${describe(uri)}" is not a data URI. A data URI has the form "data:image/png;base64,…".`,
    )
  }
  const parameters = uri.slice('data:'.length, comma).split(';').slice(1)
  const data = percentDecode(uri.slice(comma + 1))
  if (!parameters.some(parameter => parameter.trim().toLowerCase() === 'base64')) return { bytes: data }
  return { bytes: decodeBase64(data.toString('latin1'), uri) }
}

function decodeBase64(text: string, uri: string): Buffer {
  const digits = text.replace(/[\t\n\f\r ]+/g, '')
  const unpadded = digits.replace(/={1,2}$/, '')
  const padded = unpadded !== digits
  if (/[^A-Za-z0-9+/_-]/.test(unpadded) || unpadded.length % 4 === 1 || (padded && digits.length % 4 !== 0)) {
    throw new UploadError(
      'invalid_request',
      `The data of "${describe(uri)}" is not valid base64. Check that it is complete, and send it again.`,
    )
  }
  return Buffer.from(unpadded, 'base64')
}

/** The beginning of a URI, safe for a message. */
function describe(uri: string): string {
  const [head = ''] = uri.slice(0, 60).split(',')
  return `${head.replace(/[^\w/+.;=: -]/g, '_').replace(/\/{2,}/g, '/')},…`
}
