import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { extname, join } from 'node:path'
import { readCopies } from '../../body.ts'
import { messageOf, systemCode } from '../../errors.ts'
import {
  describeAbsence,
  type ProgramEnd,
  type ProgramInput,
  runProgram,
  tailOf,
} from '../../flow/run-program.ts'
import { beginTimeLimit } from '../../flow/time-limit.ts'
import { Problem, type ProblemOptions } from '../../problem.ts'
import type { Context, Target, UploadObject } from '../contract.ts'
import { cleanUrl } from '../shared/public-url.ts'
import { fillCommand, fillUrl, type ObjectFacts, variablesOf } from './words.ts'

export interface CommandOptions {
  readonly command: readonly string[]
  readonly url?: string | undefined
  readonly remove?: readonly string[] | undefined
  readonly exists?: readonly string[] | undefined
  readonly env: Readonly<Record<string, string>>
  /** Milliseconds. */
  readonly timeout: number
}

/** Exit code of a transient failure (EX_TEMPFAIL of sysexits.h). */
const TEMPORARY_FAILURE = 75
/** Variables that programs inherit. The rest of the server's environment may contain secrets of other destinations. */
const PASSED_ON =
  /^(?:PATH|HOME|USER|LOGNAME|SHELL|LANG|LC_\w+|TZ|TMPDIR|TE?MP|XDG_\w+|SSH_AUTH_SOCK|(?:HTTPS?|ALL|NO)_PROXY|SYSTEMROOT|PATHEXT|COMSPEC|(?:LOCAL)?APPDATA|USERPROFILE)$/i
/** Maximum length of a file name, in bytes. File systems accept 255. */
const MAX_NAME_BYTES = 200

/** Opens a destination that programs store to. */
export function openCommands(
  options: CommandOptions,
  { name, warn, mask, outgoing, programFolder = '/' }: Context,
): Target {
  const { command, url, remove, exists, env, timeout } = options
  const label = `command/${name}`
  if (url !== undefined && !/\{(?:key|sha256)\}/.test(url))
    warn(`${label}: "url" contains neither {key} nor {sha256}, so all files get the same URL.`)

  async function run(
    words: readonly string[],
    facts: Partial<ObjectFacts>,
    input: ProgramInput['input'],
    signal: AbortSignal,
  ): Promise<ProgramEnd> {
    const filled = fillCommand(words, facts)
    const late = new Error('the time limit is reached')
    const limit = beginTimeLimit(timeout, signal, () => late)
    const variables = { ...outgoing?.variables, ...variablesOf(facts), ...env }
    try {
      return await runProgram(filled, {
        env: { ...passedOn(), ...variables },
        cwd: programFolder,
        input,
        signal: limit.signal,
      })
    } catch (error) {
      signal.throwIfAborted()
      if (error === late)
        throw fail(words, `took longer than ${timeout / 1000} s and was killed`, { retryable: true })
      if (error instanceof Problem) throw error // the body can't be read
      const absence = describeAbsence(words, systemCode(error))
      if (absence !== undefined) throw fail(words, absence, { cause: error })
      throw fail(words, `failed: ${messageOf(error)}`, { cause: error })
    } finally {
      limit.end()
    }
  }

  function fail([program]: readonly string[], what: string, more: ProblemOptions = {}) {
    return new Problem(`"${program}" ${what}`, more)
  }

  function refuse(words: readonly string[], { code, problem, output }: ProgramEnd): Problem {
    const printed = tailOf(output, mask).replace(/https?:\/\//gi, '')
    return fail(words, `failed with ${problem}${printed}`, { retryable: code === TEMPORARY_FAILURE })
  }

  async function store(object: UploadObject, file: string | undefined, signal: AbortSignal): Promise<string> {
    const facts = { ...factsOf(object), file: file ?? '' }
    const end = await run(command, facts, file === undefined ? readCopies(object, signal) : '', signal)
    if (end.problem !== undefined) throw refuse(command, end)
    if (!end.tookAll && file === undefined)
      throw fail(command, 'exited with 0 before it had read the whole file')
    if (url !== undefined) return fillUrl(url, facts)
    const last = end.stdout.trimEnd().split('\n').at(-1)?.trim() ?? ''
    if (/^https?:\/\/[^/\s]\S*$/i.test(last) && URL.canParse(last)) return cleanUrl(last)
    const printed = tailOf(last, mask).replace(/https?:\/\//gi, '')
    throw fail(command, `printed no URL in its last line${printed}`, {
      advice: 'Set "url", or make the program print one.',
    })
  }

  return {
    async put(object, signal) {
      signal.throwIfAborted()
      if (!command.some(word => word.includes('{file}')))
        return { url: await store(object, undefined, signal) }
      const folder = await mkdtemp(join(tmpdir(), 'upload-server-command-'))
      try {
        const file = join(folder, fileName(object.key))
        await writeFile(file, object.read(signal), { mode: 0o600, signal })
        return { url: await store(object, file, signal) }
      } finally {
        await rm(folder, { recursive: true, force: true })
      }
    },
    ...(exists && {
      async exists(key: string, signal: AbortSignal) {
        const end = await run(exists, { key }, '', signal)
        if (end.code === 0 || end.code === 1) return end.code === 0
        throw refuse(exists, end)
      },
    }),
    ...(remove && {
      async remove(key: string, signal: AbortSignal) {
        const end = await run(remove, { key }, '', signal)
        if (end.problem !== undefined) throw refuse(remove, end)
      },
    }),
  }
}

function passedOn(): Record<string, string | undefined> {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => PASSED_ON.test(name)))
}

function factsOf({ key, size, contentType, sha256 }: UploadObject): Omit<ObjectFacts, 'file'> {
  return { key, size: String(size), contentType, sha256 }
}

/** Returns the file name of the object key, because programs detect the type of a file by its name. */
function fileName(key: string): string {
  const name = key.slice(key.lastIndexOf('/') + 1)
  if (Buffer.byteLength(name) <= MAX_NAME_BYTES) return name
  const extension = extname(name)
  return `file${Buffer.byteLength(extension) < 20 ? extension : ''}`
}
