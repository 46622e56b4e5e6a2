import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
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
import { secret, text, time } from '../../options.ts'
import * as z from '../../packages/zod.ts'
import { Problem, type ProblemOptions } from '../../problem.ts'
import { type Context, defineProvider, type Target, type UploadObject } from '../contract.ts'
import { cleanUrl } from '../shared/public-url.ts'
import { fill, fillUrl, findCommandFault, type ObjectFacts, variablesOf } from './words.ts'

/** Exit code of a transient failure (EX_TEMPFAIL of sysexits.h). */
const TEMPORARY_FAILURE = 75
/** Variables that programs inherit. The rest of the server's environment may contain secrets of other destinations. */
const PASSED_ON =
  /^(?:PATH|HOME|USER|LOGNAME|SHELL|LANG|LC_\w+|TZ|TMPDIR|TE?MP|XDG_\w+|SSH_AUTH_SOCK|(?:HTTPS?|ALL|NO)_PROXY|SYSTEMROOT|PATHEXT|COMSPEC|(?:LOCAL)?APPDATA|USERPROFILE)$/i

const words = () => z.array(text()).min(1)

const config = z.object({
  command: words().describe(
    'Program and arguments that store one file, run without a shell. The program reads the file from standard input, or from the path that replaces "{file}".',
  ),
  url: z
    .string()
    .regex(/^https?:\/\/[^\s]+$/i, 'must be an http or https URL')
    .optional()
    .describe(
      'URL of the stored file, with placeholders such as "{key}". Default: the last line of the program\'s output.',
    ),
  remove: words().optional().describe('Program and arguments that delete a file by its object key.'),
  exists: words()
    .optional()
    .describe(
      'Program and arguments that check whether a file exists, by its object key. Exit code 0: it exists. 1: it does not.',
    ),
  env: z
    .record(z.string().regex(/^[A-Za-z_]\w*$/, 'is not a valid name of an environment variable'), secret())
    .default({})
    .describe('Environment variables for the programs, including secrets.'),
  timeout: time()
    .prefault('2m')
    .describe(
      'Time limit for one run of a program. After it, the program and its child processes are killed.',
    ),
})

/** Any program. It runs as the server's user. */
export const command = defineProvider({
  type: 'command',
  connects: false,
  about: {
    family: 'other',
    what: 'any program, such as rclone (about 70 services), scp or a script',
    testedAgainst: 'rclone, scp and shell scripts',
    choices: [{ label: 'Your own program', hint: 'rclone, scp, a script', asks: ['command', 'url?'] }],
  },
  config,
  validate: ({ command, remove, exists, url }) => findCommandFault({ command, remove, exists }, url),
  open,
})

function open(options: z.output<typeof config>, context: Context): Target {
  const { command, url, remove, exists, env, timeout } = options
  const { name, warn, mask, outgoing, programFolder = '/' } = context
  if (url !== undefined && !/\{(?:key|sha256)\}/.test(url))
    warn(`command/${name}: "url" contains neither {key} nor {sha256}, so all files get the same URL.`)

  async function run(
    words: readonly string[],
    facts: Partial<ObjectFacts>,
    input: ProgramInput['input'],
    signal: AbortSignal,
  ): Promise<ProgramEnd> {
    const filled = words.map(word => fill(word, facts))
    const inherited = Object.entries(process.env).filter(([name]) => PASSED_ON.test(name))
    const variables = {
      ...Object.fromEntries(inherited),
      ...outgoing?.variables,
      ...variablesOf(facts),
      ...env,
    }
    const late = new Error('the time limit is reached')
    const limit = beginTimeLimit(timeout, signal, () => late)
    try {
      return await runProgram(filled, { env: variables, cwd: programFolder, input, signal: limit.signal })
    } catch (error) {
      if (error === late)
        throw fail(words, `took longer than ${timeout / 1000} s and was killed`, { retryable: true })
      if (error instanceof Problem) throw error // the body can't be read
      const why = describeAbsence(words, systemCode(error)) ?? `failed: ${messageOf(error)}`
      throw fail(words, why, { cause: error })
    } finally {
      limit.end()
    }
  }

  const fail = ([program]: readonly string[], what: string, more: ProblemOptions = {}) =>
    new Problem(`"${program}" ${what}`, more)
  /** The end of an output, for a message. */
  const printed = (output: string) => tailOf(output, mask).replace(/https?:\/\//gi, '')
  const refuse = (words: readonly string[], { code, problem, output }: ProgramEnd) =>
    fail(words, `failed with ${problem}${printed(output)}`, { retryable: code === TEMPORARY_FAILURE })

  async function store(object: UploadObject, file: string | undefined, signal: AbortSignal): Promise<string> {
    const { key, size, contentType, sha256 } = object
    const facts = { key, size: String(size), contentType, sha256, file: file ?? '' }
    const end = await run(command, facts, file === undefined ? readCopies(object, signal) : '', signal)
    if (end.problem !== undefined) throw refuse(command, end)
    if (!end.tookAll && file === undefined)
      throw fail(command, 'exited with 0 before it had read the whole file')
    if (url !== undefined) return fillUrl(url, facts)
    const last = end.stdout.trimEnd().split('\n').at(-1)?.trim() ?? ''
    if (/^https?:\/\/[^/\s]\S*$/i.test(last) && URL.canParse(last)) return cleanUrl(last)
    throw fail(command, `printed no URL in its last line${printed(last)}`, {
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
        // Programs detect the type of a file by its extension. The client chose the rest of the name.
        const [extension = ''] = /\.\w{1,16}$/.exec(object.key) ?? []
        const file = join(folder, object.sha256 + extension)
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
