import { randomInt, randomUUID } from 'node:crypto'
import type { HttpReply } from '../../http/client.ts'
import { decodeHeader } from '../../http/excerpt.ts'
import { DATE_PLACEHOLDERS } from '../../payload/date-placeholders.ts'
import type { UploadObject } from '../contract.ts'
import { findInJson, parseJsonPath } from '../shared/form-host.ts'
import { encodeKey, encodeSegment } from '../shared/public-url.ts'
import { findInXml, parseXmlPath } from '../shared/xml-path.ts'
import type { Functions } from './template.ts'

/** Maximum length of a text that a regular expression searches, because it may take quadratic time. Characters. */
const LONGEST_SEARCHED = 64 * 1024

/** Placeholders for the object that is sent, its time (the server's local time) and the secrets of the destination. */
export function objectFunctions(object: UploadObject, secrets: Readonly<Record<string, string>>): Functions {
  const now = new Date()
  const key = object.key.toWellFormed()
  return {
    filename: () => key.slice(key.lastIndexOf('/') + 1),
    key: () => key,
    contentType: () => object.contentType,
    size: () => String(object.size),
    sha256: () => object.sha256,
    ...Object.fromEntries(Object.entries(DATE_PLACEHOLDERS).map(([name, write]) => [name, () => write(now)])),
    iso: () => now.toISOString(),
    uuid: () => randomUUID(),
    random: (first, ...others) => [first, ...others][randomInt(others.length + 1)],
    base64: (first, ...others) => Buffer.from([first, ...others].join('|')).toString('base64'),
    secret(label) {
      if (Object.hasOwn(secrets, label)) return secrets[label]
      throw new Error(`refers to {secret:${label}}, which is not in "secrets"`)
    },
  }
}

/** Escapes the value of a placeholder in a URL. */
export function escapeInUrl(value: string, placeholder: string): string {
  return placeholder === 'key' ? encodeKey(value) : encodeSegment(value)
}

/** Escapes the value of a placeholder in a header. Header values are Latin-1 at best (RFC 9110, section 5.5). */
export function escapeInHeader(value: string, placeholder: string): string {
  const isName = placeholder === 'key' || placeholder === 'filename'
  return isName ? value.replace(/[^\x20-\x7e]+/g, encodeURIComponent) : value
}

/**
 * Placeholders for values in a response. As in ShareX, a first parameter is searched instead of the response.
 *
 * @param url of the request
 */
export function answerFunctions(reply: HttpReply, url: URL): Functions {
  const header = (name: string): string | undefined => {
    const raw = reply.headers[name.trim().toLowerCase()]
    const value = raw && decodeHeader(raw)
    return /^(content-)?location$/i.test(name.trim()) ? resolve(value, url) : value
  }
  return {
    response: () => reply.text.trim(),
    responseurl: () => header('location') ?? url.href,
    header,
    json(first, ...[second]) {
      return findInJson(second === undefined ? reply.text : first, parseJsonPath(second ?? first))
    },
    xml(first, ...[second]) {
      const path = parseXmlPath(second ?? first)
      return findInXml(second === undefined ? reply.text : first, path)?.trim()
    },
    regex: (first, ...others) => findByRegex(reply.text, [first, ...others]),
  }
}

function resolve(value: string | undefined, base: URL): string | undefined {
  return value !== undefined && URL.canParse(value, base.href) ? new URL(value, base).href : value
}

/** `pattern`, `pattern|group` or `input|pattern|group`; the group is a number or a name. */
function findByRegex(text: string, parameters: readonly string[]): string | undefined {
  const [input = '', pattern = '', group] = parameters.length > 2 ? parameters : [text, ...parameters]
  let expression: RegExp
  try {
    expression = new RegExp(pattern)
  } catch {
    throw new Error(`has the invalid regular expression "${pattern}"`)
  }
  if (input.length > LONGEST_SEARCHED)
    throw new Error(
      `the response has more than ${LONGEST_SEARCHED} characters, too many for the regular expression "${pattern}"`,
    )
  const match = expression.exec(input)
  if (!match || !group) return match?.[0]
  return /^\d+$/.test(group) ? match[Number(group)] : match.groups?.[group]
}
