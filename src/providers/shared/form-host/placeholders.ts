import { randomInt, randomUUID } from 'node:crypto'
import { execForeign } from '../../../flow/foreign-expression.ts'
import type { HttpReply } from '../../../http/client.ts'
import type { UploadObject } from '../../contract.ts'
import { encodeKey, encodeSegment } from '../public-url.ts'
import { findInXml, parseXmlPath } from '../xml-path.ts'
import { findInJson, parseJsonPath } from './json-path.ts'
import type { Functions } from './template.ts'

/** Where a template stands: what goes into an address is percent-encoded, what goes into a header when it has to be. */
export type EscapeContext = 'url' | 'header' | 'text'

/** What an answer consists of. */
export interface Answer {
  readonly reply: HttpReply
  /** The address it came from. */
  readonly url: URL
}

const two = (value: number): string => String(value).padStart(2, '0')

/** Placeholders for the object that is sent, its time (local time of the server) and the secrets of the destination. */
export function objectFunctions(
  object: UploadObject,
  secrets: Readonly<Record<string, string>>,
  context: EscapeContext,
): Functions {
  const now = new Date()
  const encode = context === 'url' ? encodeSegment : (text: string) => text
  const key = object.key.toWellFormed()
  const name = key.slice(key.lastIndexOf('/') + 1)
  return {
    filename: () => (context === 'header' ? toAscii(name) : encode(name)),
    key: () => (context === 'header' ? toAscii(key) : context === 'url' ? encodeKey(key) : key),
    contentType: () => encode(object.contentType),
    size: () => String(object.size),
    sha256: () => object.sha256,
    Y: () => String(now.getFullYear()),
    y: () => two(now.getFullYear() % 100),
    m: () => two(now.getMonth() + 1),
    d: () => two(now.getDate()),
    h: () => two(now.getHours()),
    i: () => two(now.getMinutes()),
    s: () => two(now.getSeconds()),
    ms: () => String(now.getMilliseconds()).padStart(3, '0'),
    timestamp: () => String(now.getTime()),
    timestampS: () => String(Math.floor(now.getTime() / 1000)),
    iso: () => encode(now.toISOString()),
    uuid: () => randomUUID(),
    random: (first, ...others) => [first, ...others][randomInt(others.length + 1)],
    base64: (first, ...others) => encode(Buffer.from([first, ...others].join('|')).toString('base64')),
    secret: label => {
      if (!Object.hasOwn(secrets, label))
        throw new Error(`names {secret:${label}}, which "secrets" does not have`)
      return encode(secrets[label] ?? '')
    },
  }
}

/** Placeholders for what stands in an answer; a second parameter in front is looked at in its place, as in ShareX. */
export function answerFunctions({ reply, url }: Answer): Functions {
  const header = (name: string): string | undefined => {
    const value = reply.headers[name.trim().toLowerCase()]
    return /^(content-)?location$/i.test(name.trim()) ? resolve(value, url) : value
  }
  return {
    response: () => reply.text.trim(),
    responseurl: () => header('location') ?? url.href,
    header,
    json(first, ...[second]) {
      const steps = parseJsonPath(second ?? first)
      return findInJson(parseJson(second === undefined ? reply.text : first), steps)
    },
    xml(first, ...[second]) {
      const path = parseXmlPath(second ?? first)
      return findInXml(second === undefined ? reply.text : first, path)?.trim()
    },
    regex: (first, ...others) => findByRegex(reply.text, [first, ...others]),
  }
}

/** Header values are Latin-1 at best (RFC 9110, section 5.5). */
function toAscii(text: string): string {
  return text.replace(/[^\x20-\x7e]+/g, encodeURIComponent)
}

function resolve(value: string | undefined, base: URL): string | undefined {
  return value !== undefined && URL.canParse(value, base.href) ? new URL(value, base).href : value
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** `pattern`, `pattern|group` or `input|pattern|group`; the group is a number or a name. */
function findByRegex(text: string, parameters: readonly string[]): string | undefined {
  const [input, pattern, group] = parameters.length > 2 ? parameters : [text, ...parameters]
  const match = execWritten(pattern ?? '', input ?? '')
  if (!match || !group) return match?.[0]
  return /^\d+$/.test(group) ? match[Number(group)] : match.groups?.[group]
}

function execWritten(pattern: string, text: string): RegExpExecArray | null {
  let expression: RegExp
  try {
    expression = new RegExp(pattern)
  } catch {
    throw new Error(`has the regular expression "${pattern}", which can't be read`)
  }
  try {
    return execForeign(expression, text)
  } catch {
    throw new Error(`has the regular expression "${pattern}", which takes too long with this answer`)
  }
}
