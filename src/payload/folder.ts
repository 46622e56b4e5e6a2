import { UploadError } from '../errors.ts'
import { cleanFileName } from './file-name.ts'

const MOST_SEGMENTS = 16
const MOST_BYTES = 512

/**
 * Reads the folder that a request wants its files in, such as `notes/2026/trip`. It never leads out of where it is put:
 * every segment is cleaned as file names are, and what could lead elsewhere is refused.
 *
 * @param name what the option is called, for messages
 * @returns segments with `/` between them; empty when nothing is left
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
