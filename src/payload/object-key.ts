import { createHash, randomBytes } from 'node:crypto'
import { hashOf } from '../body.ts'
import { messageOf } from '../errors.ts'
import { createCanceller } from '../flow/cancellation.ts'
import { DATE_PLACEHOLDERS } from './date-placeholders.ts'
import { withFittingExtension } from './extensions.ts'
import { cleanFileName, cutText, splitExtension } from './file-name.ts'
import type { Payload } from './index.ts'

/** The values of a request for the object keys of its files. */
export interface KeyFacts {
  /** For `{path}`, as `readFolder` returns it. */
  readonly path?: string | undefined
  /** For `{user}`: who uploads. It sorts files and is not a boundary. */
  readonly user?: string | undefined
  /** Whether the extension must belong to the type of the bytes. */
  readonly fitsType?: boolean | undefined
  /**
   * Random placeholders are derived from this and from the bytes, so that a retry of the request makes the same object key.
   * Undefined: they are random.
   */
  readonly seed?: string | undefined
}

/** Returns that many bytes that can't be guessed. */
type Random = (count: number) => Buffer

/** Makes the object key of a payload. */
export type KeyTemplate = (payload: Payload, now: Date, facts?: KeyFacts) => string | Promise<string>

/** Common file systems allow 255. The rest is for a counter such as `-2`. */
const MAX_SEGMENT_BYTES = 245
/** Maximum UTF-8 bytes of a UTF-16 code unit. */
const MAX_UTF8_BYTES = 3

/** Matches what `cleanKey` removes: empty segments, segments of dots, and leading or trailing spaces of a segment. */
const UNCLEAN = /(?:^|\/)(?:\s|\.*(?:\/|$))|\s(?:\/|$)/

/** Hashes that are computed on demand. */
type Algorithm = 'md5' | 'sha1'
/** Hashes that the template does not use are empty. */
type Digests = Readonly<Record<Algorithm, string>>
const NO_DIGESTS: Digests = { md5: '', sha1: '' }

interface KeyContext {
  payload: Payload
  now: Date
  base: string
  extension: string
  digests: Digests
  facts: KeyFacts
  random: Random
}

type Placeholder = (naming: KeyContext) => string

const ofDates = Object.entries(DATE_PLACEHOLDERS).map(([name, write]): [string, Placeholder] => [
  name,
  ({ now }) => write(now),
])

/** Placeholders without a parameter. */
const PLACEHOLDERS: Record<string, Placeholder> = {
  ...Object.fromEntries(ofDates),
  filename: ({ base }) => base,
  extname: ({ extension }) => extension,
  path: ({ facts }) => facts.path ?? '',
  user: ({ facts }) => (facts.user === undefined ? '' : cleanUser(facts.user)),
  uuid: ({ random }) => uuid(random),
  ulid: ({ now, random }) => ulid(now.getTime(), random),
  md5: ({ digests }) => digests.md5,
  sha1: ({ digests }) => digests.sha1,
  sha256: ({ payload }) => payload.sha256,
}

const NUMBERED = /^(\w+[-:])(\d+)$/

/** Placeholders with a number: the text before it, its maximum, and the value. */
const PARAMETERS: Readonly<Record<string, [max: number, make: (n: number, context: KeyContext) => string]>> =
  {
    'md5-': [32, (n, { digests }) => digests.md5.slice(0, n)],
    'sha1-': [40, (n, { digests }) => digests.sha1.slice(0, n)],
    'sha256-': [64, (n, { payload }) => payload.sha256.slice(0, n)],
    'str-': [64, (n, { random }) => randomString(n, random)],
    'localFolder:': [Infinity, (n, { payload }) => lastFolders(payload, n)],
  }

function lastFolders({ folders }: Payload, n: number): string {
  return folders
    .slice(-n)
    .map(name => cleanFileName(name, ''))
    .join('/')
}

/** Returns what is wrong in a `keyTemplate`, as the end of a sentence. Undefined if it is valid. */
export function defectOf(template: string): string | undefined {
  try {
    parseKeyTemplate(template)
    return undefined
  } catch (error) {
    return messageOf(error)
  }
}

/**
 * Reads a `keyTemplate` such as `{Y}/{m}/{path}/{filename}-{sha256-8}{extname}`.
 *
 * @throws Error that names an unknown placeholder, or an invalid path segment
 */
export function parseKeyTemplate(template: string): KeyTemplate {
  if (template.trim() === '')
    throw new Error('is empty: an object key needs a file name, for example "{filename}{extname}"')
  if (/\/\s*$/.test(template)) throw new Error('ends with "/": an object key must end with a file name')
  if (template.startsWith('/'))
    throw new Error('starts with "/": object keys are relative to the destination')
  if (/[\\\u0000-\u001f]/.test(template)) throw new Error('contains a backslash or a control character')
  if (template.split('/').some(segment => segment === '.' || segment === '..')) {
    throw new Error('has a "." or ".." segment')
  }
  const written = template.split(/(\{[^{}]*\})/)
  assertKnown(written)
  const parts = written.map(parsePart)
  const algorithms = (['md5', 'sha1'] as const).filter(one => template.includes(`{${one}`))

  function makeKey(payload: Payload, now: Date, digests: Digests, facts: KeyFacts): string {
    const given = cleanFileName(payload.name, payload.extension)
    const name = facts.fitsType ? withFittingExtension(given, payload) : given
    const [base, extension] = splitExtension(name)
    const render = (shown: string) => {
      const random = randomFor(payload, facts)
      const naming: KeyContext = { payload, now, base: shown, extension, digests, facts, random }
      let rendered = ''
      for (const part of parts) rendered += typeof part === 'string' ? part : part(naming)
      return cleanKey(rendered)
    }
    const key = render(base)
    if (key === '') return name
    if (key.length * MAX_UTF8_BYTES <= MAX_SEGMENT_BYTES) return key
    const longest = Math.max(...key.split('/').map(segment => Buffer.byteLength(segment)))
    const excess = longest - MAX_SEGMENT_BYTES
    return excess > 0 ? render(cutText(base, Math.max(Buffer.byteLength(base) - excess, 1))) : key
  }

  if (algorithms.length === 0) return (payload, now, facts = {}) => makeKey(payload, now, NO_DIGESTS, facts)
  return async (payload, now, facts = {}) => {
    const digests = { ...NO_DIGESTS }
    for (const algorithm of algorithms) digests[algorithm] = await digest(payload, algorithm)
    return makeKey(payload, now, digests, facts)
  }
}

function assertKnown(written: readonly string[]): void {
  const unknown = written.filter(text => text.startsWith('{') && text.endsWith('}') && !findPart(text))
  if (unknown.length === 0) return
  const [first = ''] = unknown
  const [, kind = ''] = NUMBERED.exec(first.slice(1, -1)) ?? []
  const [max = Infinity] = PARAMETERS[kind] ?? []
  if (max < Infinity) throw new Error(`has ${first}: the number must be 1 to ${max}`)
  const names = [...Object.keys(PLACEHOLDERS), 'md5-16', 'sha1-N', 'sha256-N', 'str-N', 'localFolder:N']
  const what = unknown.length === 1 ? 'the unknown placeholder' : 'the unknown placeholders'
  throw new Error(
    `has ${what} ${[...new Set(unknown)].join(' ')}; available: ${names.map(n => `{${n}}`).join(' ')}`,
  )
}

function parsePart(text: string): string | Placeholder {
  const part = findPart(text)
  if (!part && /[{}]/.test(text)) throw new Error(`has an unmatched brace near "${text}"`)
  return part ?? text
}

function findPart(text: string): Placeholder | undefined {
  if (!text.startsWith('{') || !text.endsWith('}')) return undefined
  const name = text.slice(1, -1)
  if (Object.hasOwn(PLACEHOLDERS, name)) return PLACEHOLDERS[name]
  const [, kind = '', digits] = NUMBERED.exec(name) ?? []
  const [max = 0, make] = PARAMETERS[kind] ?? []
  const value = Number(digits)
  return make && value > 0 && value <= max ? context => make(value, context) : undefined
}

const TELLS_APART = /\{(?:md5|sha1|sha256|uuid|ulid|(?:md5|sha1|sha256|str)-(?:[89]|[1-9]\d+))\}/

/** Whether other bytes get the same object key only if an attacker searched for such bytes. */
export function tellsApart(template: string): boolean {
  return TELLS_APART.test(template)
}

/** Whether two files with the same name, uploaded at different times, can get the same object key. */
export function mayRepeat(template: string): boolean {
  if (tellsApart(template) || template.includes('{timestamp}')) return false
  const isMoment = ['{m}', '{d}', '{h}', '{i}', '{s}', '{ms}'].every(part => template.includes(part))
  return !(isMoment && /\{[Yy]\}/.test(template))
}

/** Removes empty segments, which placeholders without a value leave, and changes segments that became dots. */
function cleanKey(key: string): string {
  if (!UNCLEAN.test(key)) return key
  return key
    .split('/')
    .map(segment => segment.trim())
    .filter(segment => segment !== '')
    .map(segment => (/^\.+$/.test(segment) ? `_${segment}` : segment))
    .join('/')
}

/** The name of a person as a part of a path. Names that are cleaned to the same text get different hashes. */
function cleanUser(user: string): string {
  const clean = cleanFileName(user, '')
  return clean === user ? user : `${clean}-${createHash('sha256').update(user).digest('hex').slice(0, 6)}`
}

async function digest(payload: Payload, algorithm: Algorithm): Promise<string> {
  return hashOf(payload, algorithm, createCanceller().signal)
}

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/** With a seed, returns the same bytes in the same order each time. Other contents get other bytes. */
function randomFor({ sha256 }: Payload, { seed }: KeyFacts): Random {
  if (seed === undefined) return randomBytes
  let draws = 0
  return outputLength =>
    createHash('shake256', { outputLength }).update(`${seed} ${sha256} ${draws++}`).digest()
}

/** Version 4 (RFC 9562). */
function uuid(random: Random): string {
  const bytes = random(16)
  bytes.writeUInt16BE((bytes.readUInt16BE(6) & 0x0fff) | 0x4000, 6)
  bytes.writeUInt16BE((bytes.readUInt16BE(8) & 0x3fff) | 0x8000, 8)
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
}

function randomString(length: number, random: Random): string {
  let text = ''
  while (text.length < length) {
    // 248 is the largest multiple of 62 in a byte. Without this limit, some characters would be more likely.
    for (const byte of random(length)) if (byte < 248 && text.length < length) text += BASE62[byte % 62]
  }
  return text
}

const CROCKFORD = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'

/** 48 bits of time and 80 random ones, Crockford base 32 (https://github.com/ulid/spec). */
function ulid(time: number, random: Random): string {
  let text = ''
  for (let rest = time, i = 0; i < 10; i++, rest = Math.floor(rest / 32)) text = CROCKFORD[rest % 32] + text
  for (const byte of random(16)) text += CROCKFORD[byte % 32]
  return text
}
