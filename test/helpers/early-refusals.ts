const FORM_TYPE = 'Content-Type: multipart/form-data; boundary=b'

/** Requests with 20 MB that a server with a key refuses before it has read them. */
export const EARLY_REFUSALS: [what: string, status: number, path: string, headers: string[]][] = [
  ['without the key', 401, '/upload', ['X-Forwarded-For: 203.0.113.9', FORM_TYPE]],
  ['to a destination that is unknown', 400, '/upload?picbed=nowhere', [FORM_TYPE]],
  ['with an encoding', 400, '/upload', [FORM_TYPE, 'Content-Encoding: gzip']],
  ['as a form that is none', 400, '/upload', ['Content-Type: multipart/form-data; boundary=c']],
  ['as too much JSON', 413, '/upload', []],
]
