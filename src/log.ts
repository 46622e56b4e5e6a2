import { Writable } from 'node:stream'
import { type DestinationStream, destination, type Logger, pino, stdTimeFunctions } from 'pino'
import type { Mask } from './mask.ts'

export type { Logger } from 'pino'

export interface LogOptions {
  /** Least important level that is written. */
  level: string
  /** Applied to every line before it leaves the process. */
  mask: Mask
  /** Stands in every line. */
  base?: Readonly<Record<string, unknown>>
  /** Default: standard output, as JSON or, on a terminal, as text. */
  stream?: DestinationStream
}

/** The log: a JSON object a line, with every secret masked by its value. */
export async function createLog({ level, mask, base, stream }: LogOptions): Promise<Logger> {
  return pino(
    {
      level,
      base: base ?? null,
      timestamp: stdTimeFunctions.isoTime,
      formatters: { level: label => ({ level: label }) },
      hooks: { streamWrite: line => mask(hideCredentials(line)) },
    },
    stream ?? (await standardOutput()),
  )
}

/** Takes user names, passwords and queries, where signatures and tokens stand, out of the addresses in a text. */
function hideCredentials(text: string): string {
  if (!text.includes('://')) return text
  return text.replace(/https?:\/\/[^\s"'\\]*/gi, address =>
    address.replace(/\/\/[^/?#]*@/, '//').replace(/\?.*/, '?[hidden]'),
  )
}

/** Moves the cursor of some terminals, or turns the direction of what follows, and needs no escape in JSON. */
const UNESCAPED = /[\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g

/** What is kept for later while it can't be written, bytes; the rest is dropped. */
const KEPT_BYTES = 1024 * 1024

/** A reader that goes away (`upload-server | head`) ends nothing, and neither does a full disk. */
async function standardOutput(): Promise<DestinationStream> {
  const output = destination({ fd: 1, sync: true, maxLength: KEPT_BYTES }).on('error', () => {})
  if (!process.stdout.isTTY) return output
  const { default: pretty } = await import('pino-pretty')
  const terminal = new Writable({
    write(text, _encoding, done) {
      output.write(String(text).replace(UNESCAPED, '?'))
      done()
    },
  })
  return pretty({ destination: terminal, ignore: 'pid,hostname', translateTime: 'SYS:HH:MM:ss' })
}
