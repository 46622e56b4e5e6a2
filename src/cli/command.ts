import { type Command, InvalidArgumentError, Option } from 'commander'
import type { Terminal } from './terminal.ts'

/** What the file of a command exports. */
export interface CommandFile {
  /** Adds the command: its arguments, options and examples, and what it does. */
  register(program: Command, terminal: Terminal): void
}

/** The option that nearly every command takes. */
export const configOption = () => new Option('-c, --config <file>', 'configuration file')

/** The key of a running server. */
export const keyOption = () =>
  new Option('-k, --key <key>', 'upload key of that server').env('UPLOAD_SERVER_KEY')

/** Takes an option that may be repeated. */
export const collect = (value: string, before: readonly string[] = []): string[] => [...before, value]

/** A number of things; what has more digits is a mistake. */
export function parseCount(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError('It is a whole number.')
  return Number(text)
}

/** A time in milliseconds, written `90s`, `10m` or `1h`; a number alone is seconds. */
export function parseDuration(text: string): number {
  const [, count = '', unit = 's'] = /^(\d{1,6})(s|m|h)?$/.exec(text) ?? []
  if (count === '') throw new InvalidArgumentError('A time is written 90s, 10m or 1h.')
  const seconds = { s: 1, m: 60, h: 3600 }[unit] ?? 1
  return Math.min(Number(count) * seconds * 1000, LONGEST_MS)
}

/** Longest time a timer of Node takes. */
const LONGEST_MS = 2 ** 31 - 1

/** Sets the exit code from what a command returns. The process ends by itself when nothing is left to do. */
export async function endWith(terminal: Terminal, code: Promise<number>): Promise<void> {
  terminal.exitCode = await code
}

/** `127.0.0.1:36677` will do for `http://127.0.0.1:36677`. */
export function parseServer(text: string): string {
  const address = /^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : `http://${text}`
  if (!URL.canParse(address) || !/^https?:/i.test(address))
    throw new InvalidArgumentError('An address is written http://127.0.0.1:36677.')
  return address
}
