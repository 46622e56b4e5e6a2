import { randomUUID } from 'node:crypto'
import { Argument, type Command, Option } from 'commander'
import { isSocketPath } from '../config/endpoint.ts'
import type { LoadedConfig } from '../config/load.ts'
import type { Settings } from '../config/schema.ts'
import { UploadError } from '../errors.ts'
import { readFolder } from '../payload/folder.ts'
import { askWhoIsThere, urlOf } from '../server/port.ts'
import { assertTakesPath } from '../uploader/delivery/destinations.ts'
import type { Uploader } from '../uploader/index.ts'
import { type Caller, type Input, type Outcome, SOURCES } from '../uploader/input.ts'
import { FinalizationPending } from '../uploader/jobs/finalization-pending.ts'
import { configOption, endWith, parseServer } from './command.ts'
import { FORMATS, isWebAddress, openSummary, printResults, type Result } from './format.ts'
import { findFile, NOTHING_ON_STDIN } from './local-file.ts'
import { openForCommand } from './open.ts'
import { type Progress, startProgress } from './progress.ts'
import { sendToServer, uploadAddress } from './send.ts'
import { untilInterrupted } from './signals.ts'
import { type CommonOptions, INTERRUPTED, INTERRUPTION, oneLine, quote, type Terminal } from './terminal.ts'

interface UploadOptions extends CommonOptions {
  picbed?: string
  configName?: string
  path?: string
  format: (typeof FORMATS)[number]
  /** What standard input is called. */
  name?: string
  /** Address of a running server to send through. */
  server?: string
  key?: string
  /** Whether Markdown is appended to the file that GitHub Actions names. */
  githubSummary?: boolean
}

export function register(program: Command, terminal: Terminal): void {
  program
    .command('upload')
    .description('upload without a server and print one link a line')
    .addArgument(new Argument('[file...]', 'files, addresses, or - for standard input; none: the clipboard'))
    .addOption(configOption())
    .option('--picbed <provider>', 'provider of the destination')
    .option('--config-name <name>', 'saved configuration of the provider')
    .option('--path <folder>', 'folder for the files, where the key template says {path}')
    .addOption(new Option('--format <format>', 'what to print').choices(FORMATS).default('url'))
    .option('--name <name>', 'what standard input is called')
    .option('--server <url>', 'send through a running server', parseServer)
    .addOption(new Option('-k, --key <key>', 'upload key of that server').env('UPLOAD_SERVER_KEY'))
    .option('--github-summary', 'append Markdown to the file that GITHUB_STEP_SUMMARY names')
    .addHelpText(
      'after',
      `
Examples:
  upload-server upload *.png                 one link a line, in their order
  upload-server upload                       the picture in the clipboard
  grim - | upload-server upload - --name screen.png
  upload-server upload a.png --format markdown --picbed s3 --config-name blog
  upload-server upload a.png --server https://img.example.com

It ends with 0 when all were stored, with 1 when not, and with 130 after Ctrl-C.`,
    )
    .action((files: string[], options: UploadOptions) =>
      endWith(upload(files, options, terminal, untilInterrupted())),
    )
}

/**
 * `upload-server upload F…`: one link a line on standard output, in order; 0 only when everything was stored.
 *
 * @param signal Ctrl-C: what is under way is given up, and what was stored is still said
 */
async function upload(
  names: readonly string[],
  options: UploadOptions,
  terminal: Terminal,
  signal: AbortSignal,
): Promise<number> {
  if (names.indexOf('-') !== names.lastIndexOf('-'))
    throw new Error('Standard input (-) can be given once only.')
  const summarize = options.githubSummary ? await openSummary(terminal.env) : undefined
  const all = names.length > 0 ? names : ['clipboard']
  const progress = startProgress(all.length === 1 ? `Uploading ${all[0]}` : 'Uploading', terminal)
  let results: Result[]
  try {
    results = options.server
      ? await sendToServer(names, { ...options, server: options.server }, terminal, signal)
      : await uploadHere(names, options, terminal, progress, signal)
  } finally {
    progress.stop()
  }
  printResults(results, options.format, terminal)
  const failed = results.filter(result => result.error !== undefined && result.finalizationId === undefined)
  for (const { name, error } of failed) terminal.note(oneLine(`${name}: ${error}`))
  await summarize?.(results)
  const pending = new Set(results.flatMap(({ finalizationId = [] }) => finalizationId))
  for (const id of pending)
    terminal.note(`Finish without uploading again: ${finishFor(id, options, terminal)}`)
  if (failed.length > 0) {
    const again = commandFor(names.length > 0 ? failed.map(({ name }) => name) : [], options, terminal)
    terminal.note(`${failed.length} of ${results.length} failed. Repeat: ${again}`)
  }
  if (signal.aborted && failed.length > 0) return INTERRUPTED
  return failed.length + pending.size > 0 ? 1 : 0
}

async function uploadHere(
  names: readonly string[],
  options: UploadOptions,
  terminal: Terminal,
  progress: Progress,
  signal: AbortSignal,
): Promise<Result[]> {
  const { config, mask, uploader } = await openForCommand(options, terminal)
  try {
    const destination = uploader.choose(options, SELF)
    const path = options.path === undefined ? undefined : readFolder(options.path, '--path')
    if (path !== undefined) assertTakesPath(destination)
    const results = (names.length > 0 ? [...names] : ['clipboard']).map(
      (name): Result => ({ name, error: INTERRUPTION }),
    )
    const inputs: Input[] = []
    const places: number[] = []
    for (const [place, { name }] of results.entries()) {
      const input =
        names.length === 0 ? CLIPBOARD : await toInput(name, options, uploader, config, terminal, signal)
      if (typeof input === 'string') {
        results[place] = { name, error: input }
        continue
      }
      inputs.push(input)
      places.push(place)
    }
    let done = 0
    const request = {
      destination,
      inputs,
      caller: SELF,
      wishes: { path },
      baseUrl: baseUrlOf(config.settings.server),
      signal,
      requestId: randomUUID(),
      onOutcome: (outcome: Outcome) => {
        const place = places[outcome.index] as number
        const { name } = results[place] as Result
        results[place] = outcome.ok
          ? { name, url: outcome.url }
          : { name, error: mask(outcome.error.message) }
        progress.update(`${++done} of ${inputs.length} done`)
      },
    }
    if (inputs.length > 0 && !signal.aborted) {
      await uploader.upload(request).catch(error => {
        if (error instanceof FinalizationPending) {
          const { finalizationId, problem } = error
          terminal.note(oneLine(`Everything is stored, but not finished: ${mask(problem)}`))
          for (const place of places) results[place] = { ...(results[place] as Result), finalizationId }
        } else if (!signal.aborted) throw error
      })
    }
    if (terminal.isInteractive && (await isDead(results, config.settings.server))) {
      progress.stop()
      const flag = options.config === undefined ? '' : ` --config ${quote(options.config, terminal.platform)}`
      terminal.note(`These links work while the server runs. Start it with: upload-server${flag}`)
    }
    return results
  } finally {
    await uploader.close()
  }
}

/** Whether links lead to the server of this configuration, and it does not run. */
export async function isDead(results: readonly Result[], server: Settings['server']): Promise<boolean> {
  if (server.publicUrl !== undefined) return false
  const base = baseUrlOf(server)
  return results.some(({ url }) => url?.startsWith(base)) && !(await askWhoIsThere(server)).isAlive
}

const CLIPBOARD: Input = { kind: 'clipboard', origin: 'clipboard' }

/** The person at the command line may read what the system lets them read. */
export const SELF: Caller = {
  name: 'command line',
  admittedBy: 'loopback',
  sources: new Set(SOURCES),
  roots: undefined,
  addresses: 'any',
  destinations: undefined,
}

/** @returns the input, or what is wrong with it */
async function toInput(
  name: string,
  options: UploadOptions,
  uploader: Uploader,
  { settings }: LoadedConfig,
  terminal: Terminal,
  signal: AbortSignal,
): Promise<Input | string> {
  if (name === '-') {
    const spool = uploader.spoolFor(uploader.choose(options, SELF))
    const reading = { name: options.name ?? '', spool, limit: settings.limits.fileSize }
    const payload = await uploader.payloads.read(terminal.stdin, reading).catch((error: unknown) => {
      if (signal.aborted) return undefined
      if (error instanceof UploadError) return { error, sha256: undefined }
      throw error
    })
    if (payload === undefined) return INTERRUPTION
    if (!('error' in payload) && payload.size === 0) return NOTHING_ON_STDIN
    return { kind: 'form', origin: '-', payload }
  }
  if (isWebAddress(name)) return { kind: 'url', origin: name, url: new URL(name) }
  const { path, fault } = await findFile(name, terminal)
  return fault ?? { kind: 'path', origin: name, path }
}

/** A command line that uploads what is missing. It holds no key. */
function commandFor(files: readonly string[], options: UploadOptions, { env, platform }: Terminal): string {
  // A key may stand in the address that clients are given.
  const address = options.server?.replace(/[?#].*/, '')
  const { config, picbed, configName, path, format, name, server, key, githubSummary } = options
  const named = {
    config,
    picbed,
    'config-name': configName,
    path,
    format: format === 'url' ? undefined : format,
    server: address === undefined ? undefined : withoutPassword(address),
  }
  const given = Object.entries({ ...named, name: files.includes('-') ? name : undefined })
  const flags = given.flatMap(([flag, value]) =>
    value === undefined ? [] : [`--${flag}`, quote(value, platform)],
  )
  if (server !== address || (server && key !== env['UPLOAD_SERVER_KEY'])) flags.push('--key KEY')
  if (githubSummary) flags.push('--github-summary')
  const guard = files.some(one => /^-./.test(one)) ? ['--'] : []
  return ['upload-server', 'upload', ...flags, ...guard, ...files.map(one => quote(one, platform))].join(' ')
}

function withoutPassword(address: string): string {
  const url = new URL(address)
  if (url.password === '') return address
  url.password = 'PASSWORD'
  return url.href
}

/** A command line that finishes what is stored. It holds no key. */
export function finishFor(
  id: string,
  { config, server, key }: Pick<UploadOptions, 'config' | 'server' | 'key'>,
  { platform }: Terminal,
): string {
  if (server === undefined) {
    const flags = config === undefined ? [] : ['--config', quote(config, platform)]
    return ['upload-server', 'finalize', ...flags, id].join(' ')
  }
  const { origin, pathname, search, username } = uploadAddress(server)
  const login = username === '' ? [] : ['-u', quote(username, platform)] // curl asks for the password
  const header = key === undefined && search === '' ? [] : ['-H', quote('X-Upload-Key: KEY', platform)]
  const address = quote(`${origin}${pathname}?finalizationId=${id}`, platform)
  return ['curl', '-X', 'POST', ...login, ...header, address].join(' ')
}

/** Where links to what the server itself hands out begin. */
export function baseUrlOf(server: Settings['server']): string {
  const url = server.publicUrl ?? (isSocketPath(server.host) ? 'http://localhost' : urlOf(server))
  return url.endsWith('/') ? url : `${url}/`
}
