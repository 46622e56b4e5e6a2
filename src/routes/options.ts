import { UploadError } from '../errors.ts'
import { keysOf, membersOf } from '../members.ts'
import { readFolder } from '../payload/folder.ts'
import { FORMATS, type Format } from '../pictures/options.ts'
import { assertRequestable } from '../pictures/requested-options.ts'
import { assertTakesPath, type Destination, readChoice } from '../uploader/destinations.ts'
import { assertMayExpire, readExpires } from '../uploader/expiry.ts'

import { REPLIES } from './reply-format.ts'

/** A query parameter of an upload request. */
export interface RequestOption<T = unknown> {
  /** Description for OpenAPI and docs/reference/http-api.md. Markdown without links. */
  readonly description: string
  /** Other accepted names. If several are sent, the main name wins, then the first of these. */
  readonly aliases?: readonly string[]
  /**
   * Parses the value, which is never empty.
   * @throws UploadError `invalid_request`
   */
  parse(text: string, name: string): T
  /**
   * Rejects a value that the destination does not support, before the body is read.
   * @throws UploadError
   */
  check?(value: NoInfer<T>, destination: Destination): void
  /**
   * Whether the parameter is part of the request's fingerprint for an `Idempotency-Key`. The destination and the file names
   * always are.
   */
  readonly isFingerprinted?: boolean
  /**
   * Whether a text field of a form with this name is used when the query has none. Some clients send such fields without
   * knowing this option, so a field is ignored if the destination does not support it.
   */
  isField?(destination: Destination): boolean
  /** Whether the configuration file for ShareX keeps the parameter. */
  readonly isForShareX?: boolean
}

/**
 * All query parameters of an upload request, except the upload key (credentials.ts). To add one, add a row here, and a
 * member of `UploadOptions` (uploader/input.ts) if the uploader needs it. Then run `npm run generate` to update docs/reference/http-api.md.
 */
export const OPTIONS = {
  destination: option({
    description:
      'Destination of the files: `provider/configName`, such as `s3/blog`, or `provider` alone. Without it, `picbed` and `configName`: the default destination. If it is sent twice, or contradicts `picbed` or `configName`: 400.',
    parse: asItIs,
  }),
  picbed: option({
    description:
      'Provider of the destination, such as `local` or `s3`. The spelling of PicGo and PicList for the first part of `destination`.',
    aliases: ['uploader'],
    parse: asItIs,
    isForShareX: true,
  }),
  configName: option({
    description:
      "Name of the destination within its provider. `Default` selects the provider's default destination.",
    parse: asItIs,
    isForShareX: true,
  }),
  filename: option({ description: 'File name. The request body is the file.', parse: asItIs }),
  path: option({
    description:
      'Folder for the files of this request, such as `notes/2026/trip`. It replaces `{path}` in the key template. May also be a text field of a form.',
    parse: readFolder,
    check: (_, destination) => assertTakesPath(destination),
    isFingerprinted: true,
    isField: destination => destination.takesPath,
    isForShareX: true,
  }),
  expires: option({
    description:
      'When the files expire: `90m`, `12h`, `14d`, `never`, or an RFC 3339 timestamp. Only for destinations with an `expiry`. May also be a text field of a form.',
    parse: readExpires,
    check: (expires, destination) => assertMayExpire(expires, destination, Date.now()),
    isFingerprinted: true,
    isField: ({ expiry }) => expiry !== undefined,
    isForShareX: true,
  }),
  format: option({
    description:
      'Format to convert images to: `webp`, `avif`, `jpeg` or `png`. The destination must allow it.',
    parse: oneOf<Format>(FORMATS),
    check: (_, { pictures }) => assertRequestable('format', pictures),
    isFingerprinted: true,
  }),
  quality: option({
    description: 'Quality of images in lossy formats, 1 to 100. The destination must allow it.',
    parse: wholeNumber(100, 'a whole number from 1 to 100'),
    check: (_, { pictures }) => assertRequestable('quality', pictures),
    isFingerprinted: true,
  }),
  width: option({
    description: 'Maximum width of images, in pixels. The destination must allow it.',
    parse: wholeNumber(65_535, 'a number of pixels'),
    check: (_, { pictures }) => assertRequestable('size', pictures),
    isFingerprinted: true,
  }),
  height: option({
    description: 'Maximum height of images, in pixels. The destination must allow it.',
    parse: wholeNumber(65_535, 'a number of pixels'),
    check: (_, { pictures }) => assertRequestable('size', pictures),
    isFingerprinted: true,
  }),
  stripMetadata: option({
    description: '`1` or `true` removes metadata from images. The destination must allow it.',
    parse: yes,
    check: (_, { pictures }) => assertRequestable('stripMetadata', pictures),
    isFingerprinted: true,
  }),
  status: option({
    description: '`200` makes failures return status 200, for clients that show the error message only then.',
    parse: oneOf(['200']),
  }),
  reply: option({
    description: `Format of the response: \`${REPLIES.join('`, `')}\`. All but \`json\` have one line for each link.`,
    parse: oneOf(REPLIES),
  }),
  finalizationId: option({
    description:
      'ID of an upload that is stored but whose post-upload steps failed. Runs them again. The request has no body.',
    parse: asItIs,
  }),
}

type Name = keyof typeof OPTIONS

/** The options of one request. Those that it did not send are undefined. */
export type RequestOptions = { readonly [K in Name]?: ReturnType<(typeof OPTIONS)[K]['parse']> }

export const ROW_OF: Readonly<Record<string, RequestOption>> = OPTIONS
const ROWS = keysOf(OPTIONS).map((name): [Name, RequestOption] => [name, OPTIONS[name]])

/**
 * Reads all options of a request. Empty values count as absent, and unknown names are ignored. A `destination` is returned
 * as `picbed` and `configName`, so that both spellings are the same request from here on.
 *
 * @param texts the values as sent, by name
 * @throws UploadError `invalid_request` for an invalid value
 */
export function readOptions(texts: URLSearchParams): RequestOptions {
  if (texts.size === 0) return {}
  const entries = ROWS.flatMap(([name, { aliases = [], parse }]) => {
    const sent = [name, ...aliases].find(one => texts.get(one))
    return sent === undefined ? [] : [[name, parse(texts.get(sent) ?? '', sent)]]
  })
  const { destination, ...options }: RequestOptions = Object.fromEntries(entries)
  if (destination === undefined) return options
  if (texts.getAll('destination').filter(Boolean).length > 1)
    throw new UploadError('invalid_request', '"destination" was sent more than once.')
  const { picbed, configName } = readChoice({ ...options, destination })
  return { ...options, ...(picbed && { picbed }), ...(configName && { configName }) }
}

/** Whether failures return status 200. Read separately, before anything can fail. */
export function wantsOk(texts: URLSearchParams): boolean {
  return texts.get('status') === '200'
}

/** @throws UploadError for an option that this destination does not support */
export function checkOptions(options: RequestOptions, destination: Destination): void {
  for (const [name, { check }] of ROWS) {
    const value = options[name]
    if (value !== undefined) check?.(value, destination)
  }
}

/** Names of the text fields that are read from forms. */
export const FIELDS: ReadonlySet<string> = new Set(
  ROWS.flatMap(([name, { isField }]) => (isField ? [name] : [])),
)

/**
 * Adds the options that the text fields of a form specify. The query wins over a field.
 *
 * @throws UploadError `invalid_request` for an invalid value of a field that is used
 */
export function withFields(
  options: RequestOptions,
  fields: readonly (readonly [name: string, text: string])[],
  destination: Destination,
): RequestOptions {
  if (fields.length === 0) return options
  const counted = fields.filter(
    ([name]) => membersOf(options)[name] === undefined && ROW_OF[name]?.isField?.(destination),
  )
  const added = readOptions(new URLSearchParams(Object.fromEntries(counted)))
  checkOptions(added, destination)
  return { ...options, ...added }
}

/** The options that are part of the fingerprint for an `Idempotency-Key`, in the order of the table. */
export function fingerprintedOptions(options: RequestOptions): object {
  const counted = ROWS.filter(([, { isFingerprinted }]) => isFingerprinted)
  return Object.fromEntries(counted.map(([name]) => [name, options[name]]))
}

function option<T>(row: RequestOption<T>): RequestOption<T> {
  return row
}

function asItIs(text: string): string {
  return text
}

function oneOf<T extends string>(values: readonly T[]): (text: string, name: string) => T {
  return (text, name) => values.find(value => value === text.toLowerCase()) ?? refuse(name, values.join(', '))
}

function wholeNumber(most: number, expected: string): (text: string, name: string) => number {
  return (text, name) =>
    /^[1-9]\d{0,4}$/.test(text) && Number(text) <= most ? Number(text) : refuse(name, expected)
}

function yes(text: string, name: string): true {
  return ['1', 'true'].includes(text) || refuse(name, '1 or true')
}

function refuse(name: string, expected: string): never {
  throw new UploadError('invalid_request', `"${name}" must be ${expected}.`)
}
