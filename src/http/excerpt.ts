import { isUtf8 } from 'node:buffer'
import { hideSignatures } from '../mask.ts'

/** Length of a response that is searched for a message, in characters. Pages begin with scripts and styles. */
const SEARCHED_CHARACTERS = 64 * 1024
/** Maximum length of a response in an error message, in characters. */
const EXCERPT_CHARACTERS = 256

/** Returns the beginning of a response as one line, without markup, URL schemes and signatures of our credentials. */
export function excerpt(text: string): string {
  const plain = hideSignatures(text.slice(0, SEARCHED_CHARACTERS))
    .replace(/<(script|style)[\s\S]*?(?:<\/\1>|$)/gi, ' ')
    .replace(/<[^<>]*>/g, ' ')
    .replace(/https?:\/\//gi, '')
    .replace(/\s+/g, ' ')
    .trim()
  if (plain === '') return '(nothing)'
  return plain.length > EXCERPT_CHARACTERS ? `${cutShort(plain)}…` : plain
}

/** Truncates at the end of a word, because a mask does not recognize the beginning of a secret. */
function cutShort(text: string): string {
  const head = text.slice(0, EXCERPT_CHARACTERS)
  const words = head.replace(/(?<!\S)\S*$/, '')
  return words.length > EXCERPT_CHARACTERS / 2 ? words.trimEnd() : head.replace(/(?<![^"',;])[^"',;]*$/, '')
}

/** Decodes a header of a response. Node reads Latin-1, but servers that send other characters usually write UTF-8. */
export function decodeHeader(value: string): string {
  const bytes = Buffer.from(value, 'latin1')
  return isUtf8(bytes) ? bytes.toString() : value
}
