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
  /** Default: standard output, as JSON or, on a terminal, as lines for people. */
  stream?: DestinationStream
}

/** The log: a JSON object a line, with every secret masked by its value. */
export function createLog({ level, mask, base, stream }: LogOptions): Logger {
  const isForPeople = stream === undefined && process.stdout.isTTY === true
  return pino(
    {
      level,
      base: base ?? null,
      timestamp: stdTimeFunctions.isoTime,
      formatters: { level: label => ({ level: label }) },
      serializers: { files: files => (isForPeople ? files : undefined) },
      hooks: { streamWrite: line => mask(hideCredentials(line)) },
    },
    stream ?? standardOutput(isForPeople),
  )
}

/** Takes user names, passwords and queries, where signatures and tokens stand, out of the addresses in a text. */
function hideCredentials(text: string): string {
  if (!text.includes('://')) return text
  return text.replace(/https?:\/\/[^\s"'\\]*/gi, address => hideQuery(address.replace(/\/\/[^/?#]*@/, '//')))
}

/** What ends the clause or the sentence that an address stands in belongs to that. */
function hideQuery(address: string): string {
  const at = address.indexOf('?')
  if (at === -1) return address
  let end = address.length
  while (end > at + 1 && '.,;:!)'.includes(address.charAt(end - 1))) end--
  return `${address.slice(0, at)}?[hidden]${address.slice(end)}`
}

/** What is kept for later while it can't be written, bytes; the rest is dropped. */
const KEPT_BYTES = 1024 * 1024

/** A reader that goes away (`upload-server | head`) ends nothing, and neither does a full disk. */
function standardOutput(isForPeople: boolean): DestinationStream {
  const output = destination({ fd: 1, sync: true, maxLength: KEPT_BYTES }).on('error', () => {})
  if (!isForPeople) return output
  const toLines = createLogLines(showsColours())
  return { write: line => void output.write(toLines(line)) }
}
