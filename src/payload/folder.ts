import { UploadError } from '../errors.ts'
import { cleanFileName } from './file-name.ts'

const MOST_SEGMENTS = 16
const MOST_BYTES = 512

/**
 * Reads the folder that a request asks for, such as `notes/2026/trip`. Every segment is cleaned like a file name, and a path
 * that could lead elsewhere is rejected (path traversal).
 *
 * @param name of the option, for messages
 * @returns segments separated by `/`. Empty if nothing is left
 * @throws UploadError `invalid_request`
 */
export function readFolder(text: string, name: string): string {
  const refuse = (reason: string) => new UploadError('invalid_request', `"${name}" ${reason}.`)
  if (Buffer.byteLength(text) > MOST_BYTES) throw refuse(`must have up to ${MOST_BYTES} bytes`)
  if (text.includes('\\')) throw refuse('contains a backslash: separate folders with "/"')
  if (/^\s*(?:\/|[a-z]:(?:\/|$))/i.test(text))
    throw refuse('is an absolute path: use a relative one, such as "notes/trip"')
  const segments = text.split('/').map(segment => segment.trim())
  if (segments.includes('..')) throw refuse('has a ".." segment')
  const kept = segments.filter(segment => segment !== '' && segment !== '.')
  if (kept.length > MOST_SEGMENTS) throw refuse(`must have up to ${MOST_SEGMENTS} folders`)
  return kept.map(segment => cleanFileName(segment, '')).join('/')
}
