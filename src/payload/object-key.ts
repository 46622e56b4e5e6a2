import { createHash, randomBytes, randomUUID } from 'node:crypto'
import { cleanFileName, cutText, splitExtension } from './file-name.ts'
import type { Payload } from './index.ts'

/** What a request says for the keys of its files. */
export interface KeyFacts {
  /** For `{path}`; as `readFolder` gives it. */
  readonly path?: string | undefined
}

/** Makes the key of a payload at a destination. */
export type KeyTemplate = (payload: Payload, now: Date, facts?: KeyFacts) => string | Promise<string>

/** Common file systems take 255; the rest is for a counter such as `-2`. */
const MAX_SEGMENT_BYTES = 245
/** Most that a UTF-16 code unit takes in UTF-8. */
const MAX_UTF8_BYTES = 3

/** What `cleanKey` looks for: segments that are empty or dots, and blanks at an end of one. */
const UNCLEAN = /(?:^|\/)(?:\s|\.*(?:\/|$))|\s(?:\/|$)/

/** Hashes that a payload does not come with. */
type Algorithm = 'md5' | 'sha1'
type Digests = Partial<Record<Algorithm, string>>

interface Naming {
  payload: Payload
  now: Date
  base: string
  extension: string
  digests: Digests
  facts: KeyFacts
}

type Part = (naming: Naming) => string

const two = (value: number): string => String(value).padStart(2, '0')

/** Placeholders without a parameter, under the names PicList gave them. Times are the server's local time. */
const PLACEHOLDERS: Record<string, Part> = {
  Y: ({ now }) => String(now.getFullYear()),
  y: ({ now }) => two(now.getFullYear() % 100),
  m: ({ now }) => two(now.getMonth() + 1),
  d: ({ now }) => two(now.getDate()),
  h: ({ now }) => two(now.getHours()),
  i: ({ now }) => two(now.getMinutes()),
  s: ({ now }) => two(now.getSeconds()),
  ms: ({ now }) => String(now.getMilliseconds()).padStart(3, '0'),
  timestamp: ({ now }) => String(now.getTime()),
  timestampS: ({ now }) => String(Math.floor(now.getTime() / 1000)),
  filename: ({ base }) => base,
  extname: ({ extension }) => extension,
  path: ({ facts }) => facts.path ?? '',
  uuid: () => randomUUID(),
  ulid: ({ now }) => ulid(now.getTime()),
  md5: ({ digests }) => digests.md5 as string,
  sha1: ({ digests }) => digests.sha1 as string,
  sha256: ({ payload }) => payload.sha256,
}

const PARAMETERS: [RegExp, (value: number) => Part | undefined][] = [
  [/^md5-(\d+)$/, n => (n <= 32 ? ({ digests }) => (digests.md5 as string).slice(0, n) : undefined)],
  [/^sha1-(\d+)$/, n => (n <= 40 ? ({ digests }) => (digests.sha1 as string).slice(0, n) : undefined)],
  [/^sha256-(\d+)$/, n => (n <= 64 ? ({ payload }) => payload.sha256.slice(0, n) : undefined)],
  [/^str-(\d+)$/, n => (n <= 64 ? () => randomString(n) : undefined)],
  [
    /^localFolder:(\d+)$/,
    n =>
      ({ payload }) =>
        payload.folders
          .slice(-n)
          .map(name => cleanFileName(name, ''))
          .join('/'),
  ],
]

/**
 * Reads a `keyTemplate` such as `{Y}/{m}/{path}/{filename}-{sha256-8}{extname}`.
 *
 * @throws Error that names an unknown placeholder, or a path segment no key may have
 */
export function parseKeyTemplate(template: string): KeyTemplate {
  if (template.trim() === '')
    throw new Error('is empty: a key needs a name, for example "{filename}{extname}"')
  if (/\/\s*$/.test(template)) throw new Error('ends with "/": a key needs a name behind its folders')
  if (template.startsWith('/')) throw new Error('starts with "/": keys are relative to the destination')
  if (/[\\\u0000-\u001f]/.test(template)) throw new Error('holds a backslash or a control character')
  if (template.split('/').some(segment => segment === '.' || segment === '..')) {
    throw new Error('has a "." or ".." segment')
  }
  const written = template.split(/(\{[^{}]*\})/)
  assertKnown(written)
  const parts = written.map(parsePart)
  const algorithms = (['md5', 'sha1'] as const).filter(one => template.includes(`{${one}`))

  function makeKey(payload: Payload, now: Date, digests: Digests, facts: KeyFacts): string {
    const name = cleanFileName(payload.name, payload.extension)
    const [base, extension] = splitExtension(name)
    const render = (shown: string) => {
      const naming: Naming = { payload, now, base: shown, extension, digests, facts }
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

  if (algorithms.length === 0) return (payload, now, facts = {}) => makeKey(payload, now, {}, facts)
  return async (payload, now, facts = {}) => {
    const digests: Digests = {}
    for (const algorithm of algorithms) digests[algorithm] = await digest(payload, algorithm)
    return makeKey(payload, now, digests, facts)
  }
}

function assertKnown(written: readonly string[]): void {
  const unknown = written.filter(text => text.startsWith('{') && text.endsWith('}') && !findPart(text))
  if (unknown.length === 0) return
  const names = [...Object.keys(PLACEHOLDERS), 'md5-16', 'sha1-N', 'sha256-N', 'str-N', 'localFolder:N']
  const what = unknown.length === 1 ? 'the unknown placeholder' : 'the unknown placeholders'
  throw new Error(
    `has ${what} ${[...new Set(unknown)].join(' ')}; known are ${names.map(n => `{${n}}`).join(' ')}`,
  )
}

function parsePart(text: string): string | Part {
  const part = findPart(text)
  if (!part && /[{}]/.test(text)) throw new Error(`has a lone brace near "${text}"`)
  return part ?? text
}

function findPart(text: string): Part | undefined {
  if (!text.startsWith('{') || !text.endsWith('}')) return undefined
  const name = text.slice(1, -1)
  if (Object.hasOwn(PLACEHOLDERS, name)) return PLACEHOLDERS[name]
  for (const [pattern, make] of PARAMETERS) {
    const value = Number(pattern.exec(name)?.[1] ?? 0)
    const part = value > 0 ? make(value) : undefined
    if (part) return part
  }
  return undefined
}

/** A few characters of a hash, or by chance, are not enough: other bytes may have the same. */
const NAMES_CONTENT = /\{(?:md5|sha1|sha256|uuid|ulid|(?:md5|sha1|sha256|str)-(?:[89]|[1-9]\d+))\}/

/** Whether equal keys mean equal bytes: the template names the content, or makes every key new. */
export function namesContent(template: string): boolean {
  return NAMES_CONTENT.test(template)
}

const IS_NEW_EACH_TIME = /\{(?:uuid|ulid|str-\d{1,2}|timestampS?|ms|[his])\}/

/** Whether a second key for the same file is another one than the first. Days go by too slowly to count. */
export function isNewEachTime(template: string): boolean {
  return IS_NEW_EACH_TIME.test(template)
}

/** Whether two files of one name, uploaded at different times, may get the same key. */
export function mayRepeat(template: string): boolean {
  if (namesContent(template) || template.includes('{timestamp}')) return false
  const isMoment = ['{m}', '{d}', '{h}', '{i}', '{s}', '{ms}'].every(part => template.includes(part))
  return !(isMoment && /\{[Yy]\}/.test(template))
}

/** Drops the empty segments that placeholders without a value leave, and guards the ones that became dots. */
function cleanKey(key: string): string {
  if (!UNCLEAN.test(key)) return key
  return key
    .split('/')
    .map(segment => segment.trim())
    .filter(segment => segment !== '')
    .map(segment => (/^\.+$/.test(segment) ? `_${segment}` : segment))
    .join('/')
}

async function digest(payload: Payload, algorithm: Algorithm): Promise<string> {
  const hash = createHash(algorithm)
  for await (const chunk of payload.stream()) hash.update(chunk)
  return hash.digest('hex')
}

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

function randomString(length: number): string {
  let text = ''
  while (text.length < length) {
    // 248 is the largest multiple of 62 in a byte: beyond it some characters would be likelier.
    for (const byte of randomBytes(length)) if (byte < 248 && text.length < length) text += BASE62[byte % 62]
  }
  return text
}

const CROCKFORD = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'

/** 48 bits of time and 80 random ones, Crockford base 32 (https://github.com/ulid/spec). */
function ulid(time: number): string {
  let text = ''
  for (let rest = time, i = 0; i < 10; i++, rest = Math.floor(rest / 32)) text = CROCKFORD[rest % 32] + text
  for (const byte of randomBytes(16)) text += CROCKFORD[byte % 32]
  return text
}
