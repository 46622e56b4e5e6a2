import type { Terminal } from './terminal.ts'

/** What a shell offers for a word: file names, folders, names from the configuration, or the words that a function returns. */
export type Offers =
  | 'file'
  | 'folder'
  | 'destination'
  | 'picbed'
  | 'configName'
  | (() => Promise<readonly string[]>)

/** The kind of value that a flag takes. */
export interface Value<T = unknown> {
  /** How the help shows it, without brackets: `file`. */
  readonly shown: string
  /** Default: the text as it was typed. Undefined if the text is not such a value. */
  readonly read?: (text: string) => T | undefined
  /** What the text must be, after "Must be". Needed with `read`. */
  readonly must?: string
  readonly choices?: readonly string[]
  readonly offers?: Offers
}

/** An option of a command. Its name in `Flags` makes its spelling: `keepFolders` is `--keep-folders`. */
export interface Flag {
  /** The short spelling, such as `-c`. */
  readonly short?: string
  readonly about: string
  /** Undefined for a switch. */
  readonly value?: Value
  /** Whether the spelling is `--no-NAME`, which makes the switch false. */
  readonly isNegated?: true
  /** Whether all values count, not only the last one. */
  readonly isRepeatable?: true
  /** Whether a second value is an error. */
  readonly isOnce?: true
  /** As a user would type it. */
  readonly default?: string
  /** Environment variable with the value. */
  readonly env?: string
  /** Heading in the help. */
  readonly group?: string
  /** Names of flags without one of which this one does nothing, so that giving it alone is an error. */
  readonly needs?: readonly string[]
  /** Names of flags that contradict this one. */
  readonly excludes?: readonly string[]
  /** Whether the value is never printed. */
  readonly isSecret?: true
  /** Whether it is about all files of the command. The line that repeats the failed ones omits it. */
  readonly isForAllFiles?: true
}

export type Flags = Readonly<Record<string, Flag>>

/** A positional argument. */
export interface Argument {
  /** As the help shows it: `<file>`, `[file]`, or `[file...]` for any number. */
  readonly spelling: string
  readonly about: string
  readonly choices?: readonly string[]
  readonly offers?: Offers
}

/** A command line, and optionally what it does. */
export type Example = readonly [line: string, remark?: string]

/** Everything that is known about a command before it runs. Help, completion and documents are made from it. */
export interface Command<F extends Flags = Flags> {
  readonly name: string
  readonly aliases?: readonly string[]
  readonly about: string
  readonly arg?: Argument
  readonly flags?: F
  readonly examples: readonly Example[]
  /** More text for the end of the help. */
  readonly notes?: string
  /** Meaning of the exit codes, if there are more than 0 and 1. */
  readonly exitCodes?: Readonly<Record<number, string>>
  /** Commands below this one, such as `config show`. */
  readonly commands?: readonly Command[]
  /** Whether the name may be omitted. */
  readonly isDefault?: true
  /** Loads what the command does. Undefined if it only has commands below it. */
  load?(): Promise<{ run: Run<F> }>
}

/** Does what a command is for. @returns the exit code */
export type Run<F extends Flags> = (call: Call<F>, terminal: Terminal) => Promise<number>

/** A command line that was read. */
export interface Call<F extends Flags = Flags> {
  readonly command: Command
  readonly words: readonly string[]
  readonly options: OptionsOf<F>
  readonly typed: readonly Typed[]
}

/** A flag of the command line, with the text of its value. Those of the environment are not among them. */
export type Typed = readonly [name: string, text: string | undefined]

type ValueOf<F extends Flag> = F['value'] extends { readonly read: (text: string) => infer T }
  ? Exclude<T, undefined>
  : F['value'] extends { readonly choices: readonly (infer T)[] }
    ? T
    : F['value'] extends object
      ? string
      : boolean

type Held<F extends Flag> = F extends { readonly isRepeatable: true } ? readonly ValueOf<F>[] : ValueOf<F>

type NamesWithDefault<F extends Flags> = {
  [Name in keyof F]: F[Name] extends { readonly default: string } | { readonly isNegated: true }
    ? Name
    : never
}[keyof F]

/** The options that a command with these flags gets. */
export type OptionsOf<F extends Flags> = { readonly [Name in NamesWithDefault<F>]: Held<F[Name]> } & {
  readonly [Name in Exclude<keyof F, NamesWithDefault<F>>]?: Held<F[Name]>
}

/** Checks that the command accepts the options that its flags make. */
export function defineCommand<const F extends Flags>(command: Command<F>): Command {
  return command as unknown as Command
}

/** `--keep-folders` */
export function spell(name: string, { isNegated }: Flag): string {
  return `--${isNegated ? 'no-' : ''}${name.replace(/[A-Z]/g, letter => `-${letter.toLowerCase()}`)}`
}

/** `-c, --config <file>` */
export function showFlag(name: string, flag: Flag): string {
  const spelling = [...(flag.short ? [flag.short] : []), spell(name, flag)].join(', ')
  return flag.value ? `${spelling} <${flag.value.shown}>` : spelling
}

/** An error in the command line. Nothing was done. */
export class UsageError extends Error {}
