import { hasKey } from '../client/tokens/credentials.ts'
import { TOKEN_PROVIDERS } from '../client/tokens/token-source.ts'
import { type Command, InvalidArgumentError, Option } from '../packages/commander.ts'
import { readDuration } from '../times.ts'
import type { Terminal } from './terminal.ts'

/** The exports of the file of a command. */
export interface CommandFile {
  /** Adds the command: its arguments, options and examples, and what it does. */
  register(program: Command, terminal: Terminal): void
}

/** The option `--config` of nearly every command. */
export const configOption = () =>
  new Option('-c, --config <file>', 'configuration file (default: the one in your configuration folder)')

/** The option `--config` of commands that also look in the working directory. */
export const configOptionHere = () =>
  new Option(
    '-c, --config <file>',
    'configuration file (default: ./upload-server.json, else the one in your configuration folder)',
  )

/** The option `--key` of commands that use a running server. */
export const keyOption = () =>
  new Option('-k, --key <key>', 'upload key of the running server').env('UPLOAD_SERVER_KEY')

/** The option `--token-from` of commands that use a running server. */
export const tokenFromOption = () =>
  new Option(
    '--token-from <source>',
    `send signed tokens (JWT) instead of an upload key, from: ${TOKEN_PROVIDERS.join(', ')}, or a program that prints one (default: the CI job, without an upload key)`,
  ).argParser(parseTokenFrom)

function parseTokenFrom(text: string, before: unknown): string {
  if (text.trim() === '')
    throw new InvalidArgumentError(`Must be one of: ${TOKEN_PROVIDERS.join(', ')}, or a program.`)
  return onceOnly(text, before)
}

/** The error in options that contradict each other. Undefined if there is none. */
export function findTokenFault({ server, key, tokenFrom }: ServerOptions): string | undefined {
  if (tokenFrom === undefined) return undefined
  if (server === undefined) return '--token-from requires --server.'
  return key || hasKey(new URL(server))
    ? '--token-from cannot be used with an upload key: --key, UPLOAD_SERVER_KEY, or one in the URL of --server.'
    : undefined
}

/** The options of commands that use a running server. */
export interface ServerOptions {
  /** URL of a running server. */
  server?: string
  /** Upload key. */
  key?: string
  /** Source of tokens. */
  tokenFrom?: string
}

/** Adds the options that choose a destination, in both spellings: see `readChoice`. */
export function addDestinationOptions(command: Command): Command {
  return command
    .addOption(
      new Option('--destination <id>', 'destination: "provider" or "provider/configName"').argParser(
        onceOnly,
      ),
    )
    .option('--picbed <provider>', 'provider of the destination')
    .option('--config-name <name>', 'name of the destination within its provider')
}

/** The value of an option that must not be repeated. */
export function onceOnly(text: string, before: unknown): string {
  if (before !== undefined) throw new InvalidArgumentError('Must be given only once.')
  return text
}

/** Collects the values of an option that may be repeated. */
export const collect = (value: string, before: readonly string[] = []): string[] => [...before, value]

/** A whole number of at most 9 digits. */
export function parseCount(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError('Must be a whole number.')
  return Number(text)
}

/** A time in milliseconds, written `90s`, `10m`, `1h` or `30d`. A number without a unit is in seconds. */
export function parseDuration(text: string): number {
  const ms = readDuration(/^\d+$/.test(text) ? `${text}s` : text)
  if (ms === undefined) throw new InvalidArgumentError('Must be a time such as 90s, 10m, 1h or 30d.')
  return ms
}

/** Sets the exit code to the result of a command. The process then ends when no work is left. */
export async function endWith(terminal: Terminal, code: Promise<number>): Promise<void> {
  terminal.exitCode = await code
}

/** The URL of a server. `127.0.0.1:36677` is short for `http://127.0.0.1:36677`. */
export function parseServer(text: string): string {
  const address = /^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : `http://${text}`
  if (!URL.canParse(address) || !/^https?:/i.test(address))
    throw new InvalidArgumentError('Must be a URL such as http://127.0.0.1:36677.')
  return address
}
