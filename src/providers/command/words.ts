import { keysOf } from '../../members.ts'
import { cleanUrl, encodeKey } from '../shared/public-url.ts'

/** Placeholders, and the environment variables with the same values, for scripts. */
const VARIABLES = {
  key: 'UPLOAD_OBJECT_KEY',
  size: 'UPLOAD_SIZE',
  contentType: 'UPLOAD_CONTENT_TYPE',
  sha256: 'UPLOAD_SHA256',
  /** Path of a file with the bytes. */
  file: 'UPLOAD_FILE',
}
const NAMES = keysOf(VARIABLES)

/** The properties of an object by placeholder. */
export type ObjectFacts = Readonly<Record<(typeof NAMES)[number], string>>

const PLACEHOLDER = /\{(\w{1,40})\}/g
/** The one program that gets the object key, which clients choose, in an argument. Any other may run an argument as code. */
const RCLONE = /(?:^|[\\/])rclone(?:\.exe)?$/i
/** Matches the name of a remote. rclone reads all that follows as a path. A remote with options could start a program. */
const REMOTE = /^:?\w[\w.+@ -]*:/

type Commands = Readonly<Record<string, readonly string[] | undefined>>

/** Returns a sentence about invalid commands, or undefined. */
export function findCommandFault(commands: Commands, url: string | undefined): string | undefined {
  for (const [option, words] of Object.entries(commands)) {
    const fault = words && faultOf(words, option === 'command' ? NAMES : ['key'])
    if (fault) return `"${option}" ${fault}`
  }
  if (url === undefined) return undefined
  const [unknown] = unknownIn(
    [url],
    NAMES.filter(name => name !== 'file'),
  )
  if (unknown !== undefined) return `"url" does not support the placeholder "{${unknown}}".`
  const [origin = ''] = /^https?:\/\/[^/?#]+/i.exec(url) ?? []
  if (!origin.includes('{') && URL.canParse(origin)) return undefined
  return '"url" must be an http or https URL without a placeholder in its host.'
}

function faultOf(words: readonly string[], names: readonly string[]): string | undefined {
  const [program = '', ...args] = words
  if (/[\\/]/.test(program) && !/^(?:\/|[A-Za-z]:[\\/])/.test(program))
    return `must start with the name or the absolute path of a program, not "${program}".`
  if (program.includes('{')) return 'must start with a program.'
  const [unknown] = unknownIn(args, names)
  if (unknown !== undefined)
    return `has the unknown placeholder "{${unknown}}". Available: {${names.join('}, {')}}.`
  const isPath = (word: string) => RCLONE.test(program) && REMOTE.test(word)
  const chosen = args.find(word => word.includes('{key}') && !isPath(word))
  return chosen === undefined
    ? undefined
    : `would let a file name chosen by a client be run as code, in "${chosen}". Use "$UPLOAD_OBJECT_KEY" in a script. Only rclone takes {key}, after the name of a remote: "drive:{key}".`
}

function unknownIn(texts: readonly string[], names: readonly string[]): string[] {
  const used = texts.flatMap(text => [...text.matchAll(PLACEHOLDER)].map(([, name = '']) => name))
  return used.filter(name => !names.includes(name))
}

export function fillUrl(url: string, { key, ...facts }: ObjectFacts): string {
  const encoded = Object.fromEntries(
    Object.entries(facts).map(([name, value]) => [name, encodeURIComponent(value)]),
  )
  return cleanUrl(fill(url, { ...encoded, key: encodeKey(key) }))
}

/** Replaces placeholders in one pass, so that placeholders in a value are not replaced. */
export function fill(text: string, facts: Readonly<Record<string, string>>): string {
  return text.replace(PLACEHOLDER, (whole, name: string) =>
    Object.hasOwn(facts, name) ? (facts[name] ?? '') : whole,
  )
}

/** Returns the values that are not empty as environment variables. */
export function variablesOf(facts: Partial<ObjectFacts>): Record<string, string> {
  return Object.fromEntries(NAMES.flatMap(name => (facts[name] ? [[VARIABLES[name], facts[name]]] : [])))
}
