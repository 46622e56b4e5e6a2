import { type DestinationStream, destination, type Logger, pino, stdTimeFunctions } from 'pino'
import { createLogLines, showsColours } from './log-lines.ts'
import type { Mask } from './mask.ts'

export type { Logger } from 'pino'

export interface LogOptions {
  /** Least important level that is written. */
  level: string
  /** Applied to every line before it leaves the process. */
  mask: Mask
  /** Stands in every line. */
  base?: Readonly<Record<string, unknown>>
  /** Default: `writeLogLine`. */
  stream?: DestinationStream
  /** Keeps what only people are told. Default: whether standard output is a terminal and the stream is the default one. */
  isForPeople?: boolean
}

/** The log: a JSON object a line, with every secret masked by its value. */
export function createLog({ level, mask, base, stream, ...options }: LogOptions): Logger {
  const { isForPeople = stream === undefined && isOnTerminal() } = options
  return pino(
    {
      level,
      base: base ?? null,
      timestamp: stdTimeFunctions.isoTime,
      formatters: { level: label => ({ level: label }) },
      serializers: { files: files => (isForPeople ? files : undefined) },
      hooks: { streamWrite: line => mask(hideCredentials(line)) },
    },
    stream ?? { write: writeLogLine },
  )
}

/** Takes user names, passwords and queries, where signatures and tokens stand, out of the addresses in a text. */
function hideCredentials(text: string): string {
  if (!text.includes('://')) return text
  return text.replace(/https?:\/\/[^\s"'\\]*/gi, address => hideQuery(address.replace(/\/\/[^/?#]*@/, '//')))
}

/** Punctuation after a URL belongs to the sentence around it. */
function hideQuery(address: string): string {
  const at = address.indexOf('?')
  if (at === -1) return address
  let end = address.length
  while (end > at + 1 && '.,;:!)'.includes(address.charAt(end - 1))) end--
  return `${address.slice(0, at)}?[hidden]${address.slice(end)}`
}

/** Maximum number of bytes kept while they can't be written. The rest is dropped. */
const KEPT_BYTES = 1024 * 1024

/** Whether it is people who read the log. */
const isOnTerminal = (): boolean => process.stdout.isTTY === true

let output: DestinationStream | undefined

/** Writes a line of a log, JSON, to standard output: as it is or, on a terminal, as lines for people. */
function writeLogLine(line: string): void {
  output ??= openOutput()
  output.write(line)
}

/** A reader that goes away (`upload-server | head`) ends nothing, and neither does a full disk. */
function openOutput(): DestinationStream {
  const output = destination({ fd: 1, sync: true, maxLength: KEPT_BYTES }).on('error', () => {})
  if (!isOnTerminal()) return output
  const toLines = createLogLines(showsColours())
  return { write: line => void output.write(toLines(line)) }
}
