import { basename } from 'node:path'
import { UploadError } from '../../errors.ts'
import { cleanUrl, encodeKey } from '../shared/public-url.ts'

/** What stands for a fact of the object, with all its facts. */
export interface Facts {
  readonly key: string
  readonly size: string
  readonly contentType: string
  readonly sha256: string
  /** Path of a file with the bytes. */
  readonly file: string
}

const PLACEHOLDER = /\{(\w{1,40})\}/g
const NAMES: readonly (keyof Facts)[] = ['key', 'size', 'contentType', 'sha256', 'file']

/** Programs whose arguments are read by a shell, here or elsewhere: a key in them would be run. */
const SHELLS = /^(?:(?:ba|da|z|k|mk|c|tc|fi|a)?sh|busybox|ssh|su|eval|cmd|powershell|pwsh)(?:\.exe)?$/i

type Commands = Readonly<Record<string, readonly string[] | undefined>>

/** What is wrong with the commands, as a sentence; undefined when nothing is. */
export function findFault(commands: Commands, url: string | undefined): string | undefined {
  for (const [option, words] of Object.entries(commands)) {
    const fault = words && faultOf(words, option === 'command' ? NAMES : ['key'])
    if (fault) return `"${option}" ${fault}`
  }
  if (url === undefined) return undefined
  const unknown = unknownIn(url, NAMES)
  if (unknown !== undefined || url.includes('{file}'))
    return `"url" has no place for "{${unknown ?? 'file'}}".`
  const origin = /^https?:\/\/[^/?#]+/i.exec(url)?.[0] ?? ''
  const isClear = !origin.includes('{') && URL.canParse(origin)
  return isClear ? undefined : '"url" is no address whose host is clear.'
}

function faultOf(words: readonly string[], names: readonly string[]): string | undefined {
  const [program = '', ...args] = words
  if (/[\\/]/.test(program) && !/^(?:\/|[A-Za-z]:[\\/])/.test(program))
    return `has to name its program by its name alone or by its whole path, not "${program}".`
  if (program.includes('{')) return 'has to begin with a program.'
  const unknown = args.map(word => unknownIn(word, names)).find(name => name !== undefined)
  if (unknown !== undefined) return `has no place for "{${unknown}}": there is {${names.join('}, {')}}.`
  // The path of a file ends with the name that it has in the key.
  const risky = words.findIndex(word => /\{(?:key|file)\}/.test(word))
  const shell = words.slice(0, Math.max(0, risky)).find(word => SHELLS.test(basename(word)))
  return (
    shell &&
    `would have "${shell}" read and run a name that whoever uploads may choose, in "${words[risky]}". ` +
      'Use "$UPLOAD_KEY" and "$UPLOAD_FILE" in a script.'
  )
}

function unknownIn(text: string, names: readonly string[]): string | undefined {
  return [...text.matchAll(PLACEHOLDER)].map(([, name = '']) => name).find(name => !names.includes(name))
}

/**
 * The command for one object.
 *
 * @throws UploadError `delivery_failed` when a program would take what was filled in for an option
 */
export function fillCommand(words: readonly string[], facts: Partial<Facts>): string[] {
  let endsOptions = false
  return words.map(word => {
    const filled = fill(word, facts)
    if (filled.startsWith('-') && !word.startsWith('-') && !endsOptions) {
      const message = `"${facts.key}" begins with "-", which a program takes for an option. Put a folder before {key}, or "--" before the argument.`
      throw new UploadError('delivery_failed', message)
    }
    endsOptions ||= word === '--'
    return filled
  })
}

export function fillUrl(url: string, { key, ...facts }: Facts): string {
  const encoded = Object.fromEntries(
    Object.entries(facts).map(([name, value]) => [name, encodeURIComponent(value)]),
  )
  return cleanUrl(fill(url, { ...encoded, key: encodeKey(key) }))
}

/** In one pass: what was filled in is not looked at again. */
function fill(text: string, facts: Partial<Facts>): string {
  return text.replace(PLACEHOLDER, (whole, name: string) =>
    isFact(name, facts) ? (facts[name] ?? '') : whole,
  )
}

const isFact = (name: string, facts: Partial<Facts>): name is keyof Facts => Object.hasOwn(facts, name)

/** The same facts as variables, for scripts. */
export function variablesOf({
  key,
  size,
  contentType,
  sha256,
  file,
}: Partial<Facts>): Record<string, string> {
  const all = {
    UPLOAD_KEY: key,
    UPLOAD_SIZE: size,
    UPLOAD_CONTENT_TYPE: contentType,
    UPLOAD_SHA256: sha256,
    UPLOAD_FILE: file,
  }
  return Object.fromEntries(Object.entries(all).flatMap(([name, value]) => (value ? [[name, value]] : [])))
}
