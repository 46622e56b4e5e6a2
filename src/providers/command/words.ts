import { basename } from 'node:path'
import { keysOf } from '../../members.ts'
import { Problem } from '../../problem.ts'
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
/** A name that a client chose. The path of a file ends with the file name of the object key. */
const CHOSEN_NAME = /\{(?:key|file)\}/
const OTHER_FACTS = /\{(?:size|contentType|sha256)\}/g
/** Matches an argument that ends with a chosen name, after nothing that may be code in some language. */
const ENDS_WITH_NAME = /^[^"'`()[\]{}<>|$\s]*\{(?:key|file)\}$/
const RUNS = '(?:eval|command|config|exec|execute|run|program|script|expression|action|shell|rsh|hook|pack)'
/**
 * Matches options that run the next argument, or the rest of this one: `-c`, `-lc`, `-e`, `--eval=`, `--to-command=`, and
 * `-K` of curl, which takes options from a file.
 */
const RUNS_NEXT = new RegExp(`^(?:-[a-zA-Z]*[ceESK]|--?(?:[\\w-]*-)?${RUNS}|/[ck])$`)
const RUNS_REST = new RegExp(`^(?:-[ceESK]|--?(?:[\\w-]*-)?${RUNS}=|(?:-o)?\\w*command=)`, 'i')
/**
 * Interpreters, and programs that start others. Too many of them run their arguments to know the way of each. Without
 * version and extension: "rundll" is rundll32, "m" is m4.
 */
const INTERPRETERS = new Set(
  [
    'sh ash bash busybox csh dash elvish fish ksh mksh nu tcsh zsh cmd powershell pwsh',
    'awk gawk mawk nawk sed ed ex vi vim emacs make dc expect tclsh wish gdb jq',
    'node nodejs deno bun tsx ts-node npx npm python py pypy uv uvx perl ruby irb php lua luajit',
    'java jshell groovy scala julia r rscript ghci guile racket dotnet osascript cscript wscript mshta',
    'sqlite duckdb psql mysql mariadb mongo mongosh clickhouse snowsql isql',
    'env xargs parallel find fd ssh rsh su sudo doas runuser chroot unshare nsenter eval exec command watch entr',
    'time timeout nice ionice chrt nohup setsid stdbuf script strace ltrace flock taskset systemd-run',
    'bwrap capsh chpst chronic dbus-run-session fakeroot faketime firejail gosu hyperfine mosh numactl perf',
    'pkexec prlimit proxychains run-parts screen setpriv socat start-stop-daemon su-exec tmux torsocks unbuffer',
    'at batch crontab original-awk pipx poetry conda valgrind wsl xvfb-run',
    'docker podman nerdctl kubectl oc go cargo m sftp lftp rundll regsvr msbuild',
  ].flatMap(line => line.split(' ')),
)

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
  for (const [index, word] of words.entries()) {
    if (!CHOSEN_NAME.test(word)) continue
    const before = words.slice(0, index)
    const interpreter = before.find(isInterpreter)
    if (interpreter === undefined && !isCode(word, before)) continue
    const advice =
      interpreter === undefined
        ? 'Make {key} and {file} separate arguments or the end of one, or use "$UPLOAD_OBJECT_KEY" and "$UPLOAD_FILE" in a script.'
        : `"${interpreter}" may run any argument: use "$UPLOAD_OBJECT_KEY" and standard input instead.`
    return `would let a file name chosen by a client be run as code, in "${word}". ${advice}`
  }
  return undefined
}

function unknownIn(texts: readonly string[], names: readonly string[]): string[] {
  const used = texts.flatMap(text => [...text.matchAll(PLACEHOLDER)].map(([, name = '']) => name))
  return used.filter(name => !names.includes(name))
}

/** Recognizes a name without a folder, or an absolute path. */
function isInterpreter(word: string): boolean {
  const [start = '', ...names] = word.toLowerCase().split(/[\\/]/)
  if (names.length > 0 && !/^(?:[a-z]:)?$/.test(start)) return false
  const name = (names.at(-1) ?? start).replace(/\.(?:exe|cmd|bat)$/, '')
  return INTERPRETERS.has(name.replace(/(?<![\d.])[\d.]+$/, '')) // a version, as in python3.12
}

/** @param before the arguments before it */
function isCode(word: string, before: readonly string[]): boolean {
  if (!ENDS_WITH_NAME.test(word.replace(OTHER_FACTS, '')) || RUNS_REST.test(word)) return true
  const isTest = basename(before[0] ?? '') === 'test' // `test -e` checks whether a file exists
  return !isTest && RUNS_NEXT.test(before.at(-1) ?? '')
}

/**
 * Fills in the command for one object.
 *
 * @throws Problem if a program would read a value as an option
 */
export function fillCommand(words: readonly string[], facts: Partial<ObjectFacts>): string[] {
  let endsOptions = false
  return words.map(word => {
    const filled = fill(word, facts)
    if (filled.startsWith('-') && !word.startsWith('-') && !endsOptions) {
      throw new Problem('its object key starts with "-", so the program would read it as an option', {
        advice: 'Put a folder before {key}, or "--" before the argument.',
      })
    }
    endsOptions ||= word === '--'
    return filled
  })
}

export function fillUrl(url: string, { key, ...facts }: ObjectFacts): string {
  const encoded = Object.fromEntries(
    Object.entries(facts).map(([name, value]) => [name, encodeURIComponent(value)]),
  )
  return cleanUrl(fill(url, { ...encoded, key: encodeKey(key) }))
}

/** Replaces placeholders in one pass, so that placeholders in a value are not replaced. */
function fill(text: string, facts: Readonly<Record<string, string>>): string {
  return text.replace(PLACEHOLDER, (whole, name: string) =>
    Object.hasOwn(facts, name) ? (facts[name] ?? '') : whole,
  )
}

/** Returns the values that are not empty as environment variables. */
export function variablesOf(facts: Partial<ObjectFacts>): Record<string, string> {
  return Object.fromEntries(NAMES.flatMap(name => (facts[name] ? [[VARIABLES[name], facts[name]]] : [])))
}
