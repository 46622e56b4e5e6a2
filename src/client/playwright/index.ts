import { spawn } from 'node:child_process'
import {
  appendFileSync,
  closeSync,
  constants,
  copyFileSync,
  mkdtempSync,
  openSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { extname, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import type { FullResult, Reporter, TestCase, TestResult } from '@playwright/test/reporter'
import { messageOf } from '../../errors.ts'
import { PACKAGE_FOLDER } from '../../package.ts'
import { addressIn, formatLink } from '../../page/links.ts'
import { isLink, oneLine, toMarkdown } from '../../safe-text.ts'

/** Options of the reporter: `['upload-server/playwright', { … }]`. */
export interface UploadReporterOptions {
  /** URL of a running server. Default: upload directly, with the configuration of upload-server. */
  server?: string
  /** Upload key of the server. Prefer the environment variable UPLOAD_SERVER_KEY. */
  key?: string
  /** Source of tokens (JWT), as `--token-from`. Default: without a key, the CI job that runs the tests. */
  tokenFrom?: string
  /** Configuration file, if there is no `server`. */
  config?: string
  /** Destination: `provider` or `provider/configName`. */
  destination?: string
  /** The spelling of PicGo and PicList for the two parts of `destination`. */
  picbed?: string
  configName?: string
  path?: string
  /** Tests whose attachments are uploaded. Default: `failed`, every attempt with an unexpected result. */
  tests?: 'failed' | 'all'
  /** Prefixes of the media types to upload. Default: `image/`, `video/`. Traces contain cookies and passwords. */
  types?: readonly string[]
  /** File to which Markdown with the links is appended, or false. Default: the file in GITHUB_STEP_SUMMARY. */
  summary?: string | false
  /** Whether the run fails if an attachment could not be uploaded. Default: false. */
  required?: boolean
  /** Total time for all uploads, milliseconds. Default: 5 minutes. */
  timeoutMs?: number
}

interface Attachment {
  readonly test: string
  readonly name: string
  readonly isImage: boolean
  /** Path of the file, or its bytes. */
  readonly source: string | Buffer
  /** Name at the destination. */
  readonly fileName: string
}

interface UploadedAttachment extends Attachment {
  readonly url?: string
  readonly error?: string
}

const PROGRAM = fileURLToPath(new URL('bin/upload-server.js', PACKAGE_FOLDER))
/** Does not follow a symlink instead of the summary file. Windows has no such flag. */
const { O_APPEND, O_CREAT, O_WRONLY, O_NOFOLLOW = 0 } = constants
const APPEND = O_APPEND | O_CREAT | O_WRONLY | O_NOFOLLOW
/** Maximum number of files on one command line, which Windows limits to 32,767 characters. */
const FILES_AT_ONCE = 80

/** Uploads the attachments of failed Playwright tests at the end of the run, and prints their links. */
export default class UploadReporter implements Reporter {
  readonly #options: UploadReporterOptions
  readonly #attachments: Attachment[] = []

  constructor(options: UploadReporterOptions = {}) {
    this.#options = options
  }

  /** False, so that Playwright adds its own reporter if this is the only one. */
  printsToStdio(): boolean {
    return false
  }

  onTestEnd(test: TestCase, { status, retry, attachments }: TestResult): void {
    const { tests = 'failed', types = ['image/', 'video/'] } = this.#options
    const isExpected = status === test.expectedStatus || status === 'skipped'
    if (tests === 'failed' && isExpected) return
    const title = test.titlePath().filter(Boolean).join(' › ')
    for (const { name, path, body, contentType } of attachments) {
      const source = path ?? body
      if (source === undefined || !types.some(type => contentType.startsWith(type))) continue
      const extension = path === undefined ? extensionOf(contentType) : extname(path)
      this.#attachments.push({
        test: retry === 0 ? title : `${title} (retry ${retry})`,
        name,
        isImage: contentType.startsWith('image/'),
        source,
        fileName: `${slug(`${test.title} ${name}`)}${/^\.[\w-]{1,16}$/.test(extension) ? extension : ''}`,
      })
    }
  }

  async onEnd(): Promise<{ status?: FullResult['status'] } | undefined> {
    if (this.#attachments.length === 0) return undefined
    const folder = mkdtempSync(join(tmpdir(), 'upload-server-playwright-'))
    const uploaded: UploadedAttachment[] = []
    try {
      const end = performance.now() + (this.#options.timeoutMs ?? 300_000)
      for (let start = 0; start < this.#attachments.length; start += FILES_AT_ONCE) {
        const some = this.#attachments.slice(start, start + FILES_AT_ONCE)
        uploaded.push(...(await upload(some, folder, this.#options, end - performance.now())))
      }
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
    print(uploaded)
    const { summary = process.env['GITHUB_STEP_SUMMARY'], required = false } = this.#options
    if (summary) append(summary, toSummary(uploaded))
    return required && uploaded.some(one => one.url === undefined) ? { status: 'failed' } : undefined
  }
}

/** The extension for an attachment without a file. */
function extensionOf(contentType: string): string {
  const [, subtype = ''] = /^\w+\/(?:x-)?([\w-]+)/.exec(contentType) ?? []
  return `.${{ jpeg: 'jpg', svg: 'svg', plain: 'txt', markdown: 'md' }[subtype] ?? subtype}`
}

/** Makes a file name of the letters and digits, in any language, of a text. */
function slug(text: string): string {
  const words = text.normalize('NFC').match(/[\p{L}\p{N}]+/gu) ?? []
  return words.join('-').slice(0, 80).toWellFormed() || 'attachment'
}

/** Uploads with the command `upload` in a child process, which retries transient failures and keeps the order. */
async function upload(
  attachments: readonly Attachment[],
  folder: string,
  options: UploadReporterOptions,
  timeoutMs: number,
): Promise<UploadedAttachment[]> {
  const ready: { attachment: Attachment; file: string }[] = []
  const failed = new Map<Attachment, string>()
  for (const attachment of attachments) {
    const { source, fileName } = attachment
    try {
      const file = join(mkdtempSync(join(folder, 'x')), fileName)
      if (typeof source === 'string') copyFileSync(source, file)
      else writeFileSync(file, source)
      ready.push({ attachment, file })
    } catch (error) {
      failed.set(attachment, messageOf(error))
    }
  }
  const { server, tokenFrom, config, destination, picbed, configName, path } = options
  const named = {
    server,
    'token-from': tokenFrom,
    config,
    destination,
    picbed,
    'config-name': configName,
    path,
  }
  const flags = Object.entries(named).flatMap(([name, value]) =>
    value === undefined ? [] : [`--${name}=${value}`],
  )
  const args = [PROGRAM, 'upload', '--format=json', ...flags, '--', ...ready.map(({ file }) => file)]
  const env = { ...process.env, ...(options.key !== undefined && { UPLOAD_SERVER_KEY: options.key }) }
  const results = ready.length === 0 ? [] : await run(args, env, Math.max(1, Math.ceil(timeoutMs)))
  const found = new Map(ready.map(({ attachment }, index) => [attachment, results[index]]))
  return attachments.map(attachment => {
    const { url, error = failed.get(attachment) ?? 'upload-server printed no result' } =
      found.get(attachment) ?? {}
    return { ...attachment, ...(isLink(url) ? { url } : { error }) }
  })
}

/** Runs the command. @returns its result for each file, or the same error for all */
async function run(
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  timeout: number,
): Promise<{ url?: string; error?: string }[]> {
  const child = spawn(process.execPath, args, { env, timeout, stdio: ['ignore', 'pipe', 'pipe'] })
  const ended = new Promise<string>(resolve => {
    child.on('error', error => resolve(error.message))
    child.on('close', (_, signal) =>
      resolve(signal === null ? '' : `the upload did not finish within the time limit`),
    )
  })
  const [stdout, stderr, reason] = await Promise.all([text(child.stdout), text(child.stderr), ended])
  try {
    return JSON.parse(stdout)
  } catch {
    return args.map(() => ({
      error: reason || withoutCommands(stderr).trim() || 'upload-server printed no error',
    }))
  }
}

/** Removes the workflow commands of GitHub, which contain what they mask. */
const withoutCommands = (text: string) => text.replace(/^::.*\r?\n?/gm, '')

function append(file: string, text: string): void {
  const summary = openSync(file, APPEND)
  try {
    appendFileSync(summary, text)
  } finally {
    closeSync(summary)
  }
}

/** Groups attachments by test. */
function groups(uploaded: readonly UploadedAttachment[]): Map<string, UploadedAttachment[]> {
  const found = new Map<string, UploadedAttachment[]>()
  for (const one of uploaded) found.set(one.test, [...(found.get(one.test) ?? []), one])
  return found
}

function print(uploaded: readonly UploadedAttachment[]): void {
  const stored = uploaded.filter(one => one.url !== undefined).length
  const lines = [`  Attachments: ${stored} of ${uploaded.length} uploaded`]
  for (const [test, attachments] of groups(uploaded)) {
    lines.push('', `    ${oneLine(test)}`)
    for (const { name, url, error = '' } of attachments)
      lines.push(`      ${oneLine(name)}: ${oneLine(url ?? `not uploaded: ${error}`)}`)
  }
  process.stdout.write(`\n${lines.join('\n')}\n`)
}

function toSummary(uploaded: readonly UploadedAttachment[]): string {
  const parts = [...groups(uploaded)].map(([test, attachments]) => {
    const lines = attachments.map(({ name, url, isImage, error = '' }) => {
      const title = toMarkdown(name)
      if (url === undefined) return `- ❌ ${title}: ${toMarkdown(error)}`
      const address = addressIn(url, 'markdown')
      return `- [${title}](${address})${isImage ? `\n\n  ${formatLink({ url, name: oneLine(name), isImage }, 'markdown')}\n` : ''}`
    })
    return `### ${toMarkdown(test)}\n\n${lines.join('\n')}\n`
  })
  return `## Attachments of tests\n\n${parts.join('\n')}\n`
}
