import type { CommentOptions } from '../client/comments/comment.ts'
import type { ClientOptions } from '../client/create-client.ts'
import type { EntryOptions } from '../client/entries.ts'
import type { OutputFormat } from '../client/reports/format.ts'
import type { ReportOptions } from '../client/reports/reports.ts'
import { messageOf } from '../errors.ts'
import { type Command, InvalidArgumentError, Option } from '../packages/commander.ts'
import { readFolder } from '../payload/folder.ts'
import { type ChoiceAsSent, readChoice } from '../uploader/destinations.ts'
import { findTokenFault, parseCount, parseDuration } from './command.ts'
import type { DesktopOptions } from './desktop.ts'
import type { CommonOptions } from './terminal.ts'

/** Earlier spellings, which are still accepted. */
interface DeprecatedOptions {
  /** `--strip-components` */
  strip?: number
  /** `--files-from -` */
  stdinList?: boolean
  /** `--retry-max-time` */
  timeout?: number
}

export interface UploadOptions
  extends CommonOptions,
    ReportOptions,
    CommentOptions,
    DesktopOptions,
    ChoiceAsSent,
    Omit<EntryOptions, 'isLiteral'>,
    DeprecatedOptions,
    Pick<ClientOptions, 'wait' | 'job' | 'key' | 'tokenFrom'> {
  format: OutputFormat
  /** Maximum number of parallel requests. */
  concurrency: number
  /** How long transient failures are retried, milliseconds. */
  retryMaxTime: number
  /** When the files expire. */
  expires?: string
  /** Name of the one file at the destination. */
  name?: string
  /** File with the names of files to upload, or - for standard input. */
  filesFrom?: string
  allowEmpty?: boolean
  softFail?: boolean
  quiet?: boolean
  /** URL of a running server to send through. */
  server?: string
}

/** Longest delay of a timer in Node. */
const LONGEST_MS = 2 ** 31 - 1

/** Options that only apply with --server. */
const FOR_SERVER = ['concurrency', 'retryMaxTime', 'timeout', 'wait', 'job']

/** The given options that only apply with --server, as `--NAME`. */
export function optionsForServer(command: Command): string[] {
  return command.options.flatMap(option => {
    const name = option.attributeName()
    const isGiven = command.getOptionValueSource(name) === 'cli'
    return FOR_SERVER.includes(name) && isGiven ? (option.long ?? []) : []
  })
}

/** An earlier spelling of an option. @param present attribute of the option that replaces it */
export function renamed(flags: string, present: keyof UploadOptions): Option {
  return new Option(flags, 'deprecated').hideHelp().conflicts(present)
}

export function withPresentNames({ strip, stdinList, timeout, ...options }: UploadOptions): UploadOptions {
  return {
    ...options,
    ...(strip !== undefined && { stripComponents: strip }),
    ...(stdinList && { filesFrom: '-' }),
    ...(timeout !== undefined && { retryMaxTime: timeout }),
  }
}

export const parseTimerDelay = (text: string) => Math.min(parseDuration(text), LONGEST_MS)

export function parseConcurrency(text: string): number {
  const count = parseCount(text)
  if (count < 1 || count > 64) throw new InvalidArgumentError('Must be a whole number from 1 to 64.')
  return count
}

/** An error in the command line. Nothing was uploaded. */
export class UsageError extends Error {}

/** @returns the options, with the destination in the spelling of PicGo and PicList */
export function checkUsage(
  names: readonly string[],
  options: UploadOptions,
  forServer: readonly string[],
): UploadOptions {
  // An empty name would mean the working directory with all its files.
  if ([...names, options.compare, options.filesFrom].includes(''))
    throw new UsageError('A file name is empty. Check whether a variable is unset.')
  if (names.indexOf('-') !== names.lastIndexOf('-'))
    throw new UsageError('Standard input (-) can be given only once.')
  if (options.filesFrom === '-' && names.includes('-'))
    throw new UsageError(
      'Standard input can be either a file (-) or a list of names (--files-from -), not both.',
    )
  if (options.stripComponents !== undefined && !options.keepFolders)
    throw new UsageError('--strip-components requires --keep-folders.')
  if (options.server === undefined && forServer.length > 0)
    throw new UsageError(`${forServer[0]} requires --server.`)
  const fault = findTokenFault(options)
  if (fault !== undefined) throw new UsageError(fault)
  if (options.compare !== undefined && !options.comment) throw new UsageError('--compare requires --comment.')
  try {
    readFolder(options.path ?? '', '--path')
    return { ...options, ...readChoice(options) }
  } catch (error) {
    throw new UsageError(messageOf(error))
  }
}
