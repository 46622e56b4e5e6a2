import { UploadError } from '../errors.ts'
import { readFolder } from '../payload/folder.ts'
import { FORMATS, type Format } from '../pictures/options.ts'
import { assertMayAsk } from '../pictures/wish.ts'
import { assertTakesPath, type Destination } from '../uploader/delivery/destinations.ts'
import { assertMayExpire } from '../uploader/delivery/expiry.ts'
import { readExpires } from '../uploader/expires.ts'

import { REPLIES } from './reply-format.ts'

/** Something that a request may ask for in its query. */
export interface RequestOption<T = unknown> {
  /** For people, in OpenAPI and in docs/api.md; Markdown without links. */
  readonly description: string
  /** Other names of it; of several that are there, its own counts first. */
  readonly aliases?: readonly string[]
  /**
   * Reads what was sent, which is never empty.
   * @throws UploadError `invalid_request`
   */
  parse(text: string, name: string): T
  /**
   * Refuses what a destination does not do, before the body is read.
   * @throws UploadError
   */
  check?(value: NoInfer<T>, destination: Destination): void
  /**
   * Whether requests that differ in it alone differ for an `Idempotency-Key`. The destination and the names of files
   * always count.
   */
  readonly isFingerprinted?: boolean
  /**
   * Whether a form's text field of that name counts for a destination when the query has none. Clients that know nothing of
   * the option send such fields: one that the destination can't follow is ignored.
   */
  isField?(destination: Destination): boolean
  /** Whether it is kept in the file for ShareX. */
  readonly isForShareX?: boolean
}

/**
 * Every option of a request but its key (credentials.ts). A new one is a row here, and a member of `Wishes`
 * (uploader/input.ts) when the uploader has to know it; `npm run generate` then brings docs/api.md up to date.
 */
export const OPTIONS = {
  picbed: option({
    description:
      'Provider of the destination, such as `local` or `s3`. Without it and `configName`: the default destination.',
    aliases: ['uploader'],
    parse: asItIs,
    isForShareX: true,
  }),
  configName: option({
    description: "Name of a saved configuration. `Default` stands for the provider's default one.",
    parse: asItIs,
    isForShareX: true,
  }),
  filename: option({ description: 'The body is a file of this name.', parse: asItIs }),
  path: option({
    description:
      'Folder for the files of this request, such as `notes/2026/trip`, where the key template says `{path}`. A text field of a form, too.',
    parse: readFolder,
    check: (_, destination) => assertTakesPath(destination),
    isFingerprinted: true,
    isField: destination => destination.takesPath,
    isForShareX: true,
  }),
  expires: option({
    description:
      'When the files may go: `90m`, `12h`, `14d`, `never`, or a time of RFC 3339, where the destination has an `expiry`. A text field of a form, too.',
    parse: readExpires,
    check: (expires, destination) => assertMayExpire(expires, destination, Date.now()),
    isFingerprinted: true,
    isField: ({ expiry }) => expiry !== undefined,
    isForShareX: true,
  }),
  format: option({
    description: 'Converts pictures to `webp`, `avif`, `jpeg` or `png`, where the destination allows it.',
    parse: oneOf<Format>(FORMATS),
    check: (_, { pictures }) => assertMayAsk('format', pictures),
    isFingerprinted: true,
  }),
  quality: option({
    description: 'Of pictures in lossy formats, 1 to 100, where the destination allows it.',
    parse: wholeNumber(100, 'a whole number from 1 to 100'),
    check: (_, { pictures }) => assertMayAsk('quality', pictures),
    isFingerprinted: true,
  }),
  width: option({
    description: 'Pictures become at most so many pixels wide, where the destination allows it.',
    parse: wholeNumber(65_535, 'a number of pixels'),
    check: (_, { pictures }) => assertMayAsk('size', pictures),
    isFingerprinted: true,
  }),
  height: option({
    description: 'Pictures become at most so many pixels high, where the destination allows it.',
    parse: wholeNumber(65_535, 'a number of pixels'),
    check: (_, { pictures }) => assertMayAsk('size', pictures),
    isFingerprinted: true,
  }),
  strip: option({
    description: '`1` or `true`: removes metadata from pictures, where the destination allows it.',
    parse: yes,
    check: (_, { pictures }) => assertMayAsk('strip', pictures),
    isFingerprinted: true,
  }),
  status: option({
    description: '`200`: a failure has status 200, too, for clients that show no message with another one.',
    parse: oneOf(['200']),
  }),
  reply: option({
    description: `How the answer is written: \`${REPLIES.join('`, `')}\`. As text it has one line for each link.`,
    parse: oneOf(REPLIES),
  }),
  finalizationId: option({
    description: 'Finishes an upload whose last step failed; there is no body.',
    parse: asItIs,
  }),
}

type Name = keyof typeof OPTIONS

/** The options of one request; those that it did not send are missing. */
export type RequestOptions = { readonly [K in Name]?: ReturnType<(typeof OPTIONS)[K]['parse']> }

const ROW_OF: Readonly<Record<string, RequestOption>> = OPTIONS
const ROWS: readonly (readonly [name: string, option: RequestOption])[] = Object.entries(ROW_OF)

/**
 * Reads all options of a request. Empty ones count as absent, unknown names are ignored.
 *
 * @param texts what was sent, by name
 * @throws UploadError `invalid_request` for what is no such value
 */
export function readOptions(texts: URLSearchParams): RequestOptions {
  if (texts.size === 0) return {}
  const entries = ROWS.flatMap(([name, { aliases = [], parse }]) => {
    const sent = [name, ...aliases].find(one => texts.get(one))
    return sent === undefined ? [] : [[name, parse(texts.get(sent) ?? '', sent)]]
  })
  return Object.fromEntries(entries)
}

/** Whether failures are to have status 200. Known before anything can fail. */
export function wantsOk(texts: URLSearchParams): boolean {
  return texts.get('status') === '200'
}

/** @throws UploadError for an option that this destination does not follow */
export function checkOptions(options: RequestOptions, destination: Destination): void {
  for (const [name, { check }] of ROWS) {
    const value = options[name as Name]
    if (value !== undefined) check?.(value, destination)
  }
}

/** Names of the text fields of forms that are read. */
export const FIELDS: ReadonlySet<string> = new Set(
  ROWS.flatMap(([name, { isField }]) => (isField ? [name] : [])),
)

/**
 * The options with those that a form's text fields add.
 *
 * @throws UploadError `invalid_request` for a field that counts and is no such value
 */
export function withFields(
  options: RequestOptions,
  fields: ReadonlyMap<string, string>,
  destination: Destination,
): RequestOptions {
  const counted = [...fields].filter(
    ([name]) => options[name as Name] === undefined && ROW_OF[name]?.isField?.(destination),
  )
  const added = readOptions(new URLSearchParams(counted))
  checkOptions(added, destination)
  return { ...options, ...added }
}

/** The options that tell requests with one `Idempotency-Key` apart, in the order of the table. */
export function fingerprintedOptions(options: RequestOptions): object {
  const counted = ROWS.filter(([, { isFingerprinted }]) => isFingerprinted)
  return Object.fromEntries(counted.map(([name]) => [name, options[name as Name]]))
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
