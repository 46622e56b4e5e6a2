import { styleText } from 'node:util'
import { CONTROLS } from './safe-text.ts'

/** Result of one file of a request, for terminals. JSON lines omit it. */
export interface LoggedFile {
  /** As the client named it. */
  readonly name: string
  /** Bytes. */
  readonly size?: number
  readonly url?: string
  /** Why it was not stored, in a sentence. */
  readonly error?: string
}

interface LogEntry {
  readonly level?: string
  readonly time?: string
  readonly msg?: string
  readonly address?: string
  readonly files?: readonly LoggedFile[]
  readonly problem?: string
  readonly repeated?: boolean
  readonly req?: { readonly method: string; readonly path: string }
  readonly res?: { readonly status: number | null }
  readonly ms?: number
  readonly err?: { readonly code?: string; readonly message?: string; readonly cause?: { stack?: string } }
}

/** Longest name that is shown whole, characters. */
const LONGEST_NAME = 60

const MARKS = {
  done: { text: '✓', colour: 'green' },
  failed: { text: '✗', colour: 'red' },
  warning: { text: '!', colour: 'yellow' },
  plain: { text: '·', colour: 'dim' },
} as const

/** Whether the terminal shows colours (no-color.org). */
export function showsColours(): boolean {
  return !process.env['NO_COLOR'] && process.env['TERM'] !== 'dumb'
}

type Line = readonly [mark: keyof typeof MARKS, text: string, more?: readonly string[]]

/**
 * Makes lines for people of the lines of the log: one for each file, one for each request that failed, nothing for other
 * requests, and a sentence that was the last one already only as a reference to it.
 *
 * @param isColoured whether marks and times have colours
 * @returns from a line of JSON to text with its line ends, or nothing
 */
export function createLogLines(isColoured: boolean): (json: string) => string {
  const paint = (colour: Parameters<typeof styleText>[0], text: string) =>
    isColoured ? styleText(colour, text, { validateStream: false }) : text
  let last: string | undefined

  /** What was wrong, unless the line before says just that. */
  function once(reason: string): string {
    const shown = reason === last ? 'same error as above' : reason
    last = reason
    return shown
  }

  function linesOf(entry: LogEntry): Line[] {
    const { level, msg = '', err, files, req } = entry
    if (!req) {
      const detail = err?.message && !msg.includes(err.message) ? `${msg}: ${err.message}` : msg
      return [[markOf(level), detail]]
    }
    if (files) return linesOfFiles(files, entry)
    const what = `${req.method} ${req.path}`
    const reason = err?.message ?? entry.problem
    if (reason !== undefined || markOf(level) !== 'plain') {
      const stack = err?.code === 'internal_error' ? err.cause?.stack?.split('\n') : undefined
      return [['failed', `${what}${from(entry)}: ${once(reason ?? String(entry.res?.status))}`, stack]]
    }
    if (entry.repeated) return [['done', `${what}: earlier response returned again  ${entry.ms} ms`]]
    return level === 'debug' ? [['plain', `${what}  ${entry.res?.status}  ${entry.ms} ms`]] : []
  }

  function linesOfFiles(files: readonly LoggedFile[], entry: LogEntry): Line[] {
    const failures = new Map<string, string[]>()
    for (const { name, error } of files)
      if (error !== undefined) failures.set(error, [...(failures.get(error) ?? []), lastPart(name)])
    const stored = files.flatMap(({ name, size = 0, url }): Line[] =>
      url === undefined
        ? []
        : [
            [
              'done',
              `${lastPart(name)}  ${paint('dim', bytes(size))} → ${url}  ${paint('dim', `${entry.ms} ms`)}`,
            ],
          ],
    )
    const { code, cause } = entry.err ?? {}
    const stack = code === 'internal_error' ? cause?.stack?.split('\n') : undefined
    return [
      ...stored,
      ...[...failures].map(([error, names]): Line => {
        const more = names.length > 3 ? ` and ${names.length - 3} more` : ''
        return ['failed', `${names.slice(0, 3).join(', ')}${more}${from(entry)}: ${once(error)}`, stack]
      }),
    ]
  }

  return json => {
    const entry = parse(json)
    if (!entry) return `${json.trimEnd().replace(CONTROLS, '?')}\n`
    const time = new Date(entry.time ?? Date.now()).toTimeString().slice(0, 8)
    const clean = (value: unknown) =>
      typeof value === 'string' ? value.replace(CONTROLS, keepLineFeed) : value
    const lines = linesOf(JSON.parse(JSON.stringify(entry), (_, value: unknown) => clean(value)))
    return lines
      .flatMap(([mark, text, more = []]) => {
        const { text: sign, colour } = MARKS[mark]
        return [
          `${paint('dim', time)} ${paint(colour, sign)} ${text.replaceAll('\n', '\n           ')}`,
          ...more,
        ]
      })
      .map(line => `${line}\n`)
      .join('')
  }
}

function parse(json: string): LogEntry | undefined {
  try {
    return JSON.parse(json)
  } catch {
    return undefined
  }
}

function markOf(level: string | undefined): keyof typeof MARKS {
  if (level === 'warn') return 'warning'
  return level === 'error' || level === 'fatal' ? 'failed' : 'plain'
}

/** The client, unless it is local. */
function from({ address }: LogEntry): string {
  return address === undefined || /^(?:::ffff:)?127\.|^::1$/.test(address) ? '' : ` from ${address}`
}

const keepLineFeed = (character: string) => (character === '\n' ? character : '?')

/** A name in one line; of a path its end says most. */
function lastPart(name: string): string {
  const line = name.replaceAll('\n', '?')
  return line.length > LONGEST_NAME ? `…${line.slice(-LONGEST_NAME)}` : line
}

/** Bytes for people; 1 KB is 1024 bytes, as everywhere here. */
export function bytes(size: number): string {
  const step = Math.min(3, Math.floor(Math.log2(Math.max(size, 1)) / 10))
  const value = size / 1024 ** step
  return `${step > 0 && value < 10 ? value.toFixed(1) : Math.round(value)} ${['B', 'KB', 'MB', 'GB'][step]}`
}
