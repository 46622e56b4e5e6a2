import type { Members } from '../members.ts'

/** Maximum length of a user name, bytes, as for people whom a reverse proxy names. */
const LONGEST_USER = 255
/** Maximum length of a value in a message, characters. */
const SHOWN_CHARACTERS = 100

/** Returns why a token does not have the claims that are required, for the log; undefined if it has them all. */
export function findMisfit(
  payload: Members,
  required: Readonly<Record<string, readonly string[]>>,
): string | undefined {
  for (const [claim, patterns] of Object.entries(required)) {
    const value = memberOf(payload, claim)
    const isFine = textsOf(value).some(text => patterns.some(pattern => matches(text, pattern)))
    if (!isFine) return describeMisfit(claim, value, show(patterns))
  }
  return undefined
}

/** Why a claim of a token is not accepted, for the log. */
export function describeMisfit(claim: string, value: unknown, expected = 'another value'): string {
  return `claim "${claim}" is ${show(value)}, expected ${expected}`
}

/**
 * Fills the template of the user name, such as `{repository}`.
 *
 * @returns undefined if a claim of it is missing, or if the name is empty, longer than 255 bytes, or has control characters
 */
export function userOf(payload: Members, template: string): string | undefined {
  const readClaim = (claim: string) => textOf(memberOf(payload, claim)) ?? ''
  const user = template.replace(PLACEHOLDER, (_, claim: string) => readClaim(claim))
  const isComplete = user !== '' && !claimsIn(template).some(claim => readClaim(claim) === '')
  const isFine = user.isWellFormed() && !/\p{Cc}/u.test(user) && Buffer.byteLength(user) <= LONGEST_USER
  return isComplete && isFine ? user : undefined
}

const PLACEHOLDER = /\{([^{}]+)\}/g

/** Whether every brace of a template belongs to a placeholder. */
export function isUserTemplate(template: string): boolean {
  return !/[{}]/.test(template.replace(PLACEHOLDER, ''))
}

/** The claims that a template names. */
export function claimsIn(template: string): string[] {
  return [...template.matchAll(PLACEHOLDER)].map(([, claim = '']) => claim)
}

/** Shows a value of a token in the log. */
export function show(value: unknown): string {
  const text = value === undefined ? 'missing' : JSON.stringify(value)
  return text.length > SHOWN_CHARACTERS ? `${text.slice(0, SHOWN_CHARACTERS)}…` : text
}

function memberOf(payload: Members, claim: string): unknown {
  return Object.hasOwn(payload, claim) ? payload[claim] : undefined
}

/** The texts that a claim is compared by: one, or those of a list. Empty if it has anything else. */
function textsOf(value: unknown): string[] {
  const texts = [value].flat().map(textOf)
  return texts.every(text => text !== undefined) ? texts : []
}

function textOf(value: unknown): string | undefined {
  if (typeof value === 'string') return value
  // Different numbers above 2^53 may have been read as the same one.
  if (typeof value === 'number' && (Number.isSafeInteger(value) || !Number.isInteger(value)))
    return JSON.stringify(value)
  return typeof value === 'boolean' ? String(value) : undefined
}

/** Compares a text with a pattern, in which `*` matches one or more characters other than `/`. */
export function matches(text: string, pattern: string): boolean {
  const [texts, patterns] = [text.split('/'), pattern.split('/')]
  return texts.length === patterns.length && texts.every((one, i) => matchesSegment(one, patterns[i] ?? ''))
}

// No regular expression: with several stars it could take time for ages on the name of a branch.
function matchesSegment(text: string, pattern: string): boolean {
  const [first = '', ...rest] = pattern.split('*')
  const last = rest.pop()
  if (last === undefined) return text === pattern
  if (!text.startsWith(first)) return false
  let at = first.length
  for (const part of rest) {
    const found = text.indexOf(part, at + 1)
    if (found === -1) return false
    at = found + part.length
  }
  return text.length - last.length > at && text.endsWith(last)
}
