import { extname } from 'node:path'
import type { FullConfig, FullResult, Reporter, TestCase, TestResult } from '@playwright/test/reporter'
import { runIdOf } from '../client/ci-run.ts'
import type { Entry } from '../client/entries.ts'
import { toEntry } from '../client/index.ts'
import { traceViewerOf } from '../client/reports/format.ts'
import { imagesOf } from '../client/reports/images.ts'
import type { Shard } from '../client/reports/shards.ts'
import { toSummary } from '../client/reports/summary.ts'
import type { Result } from '../client/result.ts'
import { uploadAll } from '../client/uploads.ts'
import { messageOf } from '../errors.ts'
import { appendToFile } from '../files/replace-file.ts'
import { beginTimeLimit } from '../flow/time-limit.ts'
import { oneLine } from '../safe-text.ts'
import { readChoice } from '../uploader/destinations.ts'
import { remarksOn } from './repeat.ts'
import type { ReviewImages } from './reviewing.ts'
import { createTerminal, type Terminal } from './terminal.ts'
import { withUploads } from './with-uploads.ts'

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
  path?: string
  /** Tests whose attachments are uploaded. Default: `failed`, every attempt with an unexpected result. */
  tests?: 'failed' | 'all'
  /** Prefixes of the media types to upload. Default: `image/`, `video/`. Traces contain cookies and passwords. */
  types?: readonly string[]
  /** File to which Markdown with the links is appended, or false. Default: the file in GITHUB_STEP_SUMMARY. */
  summary?: string | false
  /** Whether to show the attachments in a comment on the pull request, as `upload --comment`. Default: false. */
  comment?: boolean
  /** Heading of the comment, as `--comment-title`. */
  commentTitle?: string
  /** Name of the comment, for jobs of a matrix. Default: the name of the CI job. */
  commentName?: string
  /** File for a page with all attachments, as `upload --report`. */
  report?: string
  /** Whether the run fails if an attachment could not be uploaded. Default: false. */
  required?: boolean
  /** Total time for all uploads, milliseconds. Default: 5 minutes. */
  timeoutMs?: number
}

interface Attachment {
  readonly test: string
  readonly name: string
  /** Path of the file, or its bytes. */
  readonly source: string | Buffer
  /** Name at the destination. */
  readonly fileName: string
}

/** Uploads the attachments of failed Playwright tests at the end of the run, and prints their links. */
export default class UploadReporter implements Reporter {
  readonly #options: UploadReporterOptions
  readonly #attachments: Attachment[] = []
  #shard: Shard | undefined

  constructor(options: UploadReporterOptions = {}) {
    this.#options = options
  }

  onBegin({ shard }: FullConfig): void {
    if (shard) this.#shard = { index: shard.current, of: shard.total }
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
      this.#attachments.push({
        test: retry === 0 ? title : `${title} (retry ${retry})`,
        name,
        source,
        fileName: slug(`${test.title} ${name}`) + (path ? extname(path) : extensionOf(contentType)),
      })
    }
  }

  async onEnd(): Promise<{ status?: FullResult['status'] } | undefined> {
    // The comment of an earlier run must not stay if nothing fails any more.
    if (this.#attachments.length === 0 && !this.#options.comment) return undefined
    const results = await upload(this.#attachments, this.#options, this.#shard)
    if (results.length > 0) print(this.#attachments, results)
    const { summary = process.env['GITHUB_STEP_SUMMARY'], required = false } = this.#options
    if (summary && results.length > 0) await appendToFile(summary, toSummary(results))
    return required && results.some(one => one.url === undefined) ? { status: 'failed' } : undefined
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

/** Uploads through the server, or with the configuration of upload-server. No error ends the run. */
async function upload(
  attachments: readonly Attachment[],
  options: UploadReporterOptions,
  shard: Shard | undefined,
): Promise<Result[]> {
  const { key = process.env['UPLOAD_SERVER_KEY'], timeoutMs = 300_000, path, server, config } = options
  const { signal, end } = beginTimeLimit(timeoutMs, new AbortController().signal, () => new Error(TOO_LATE))
  const terminal = createTerminal(process, () => signal)
  const { note } = terminal
  const typed = Object.entries({ server, config }).filter(([, text]) => text !== undefined)
  try {
    const reviewImages = await loadReviewing(options, shard, terminal, signal)
    const sent = { ...options, ...readChoice(options), key }
    return await withUploads(sent, terminal, {}, async uploads => {
      const toNamed = async (one: Attachment): Promise<Entry> => {
        const entry = await toEntry(sourceOf(one), terminal)
        const name = nameOf(one)
        return { ...entry, name, inside: name, ...(path !== undefined && { folder: path }) }
      }
      const entries = await Promise.all(attachments.map(toNamed))
      const store = () => uploadAll(uploads, entries, signal)
      const { results } = reviewImages
        ? await reviewImages({ images: imagesOf(entries), uploads, store })
        : { results: await store() }
      for (const line of remarksOn(results, await uploads.explainUnreachable(), typed, terminal)) note(line)
      return results.map(({ error, ...result }) => {
        const reason = result.code === 'interrupted' ? TOO_LATE : error && terminal.mask(error)
        return { ...result, ...(reason !== undefined && { error: reason }) }
      })
    })
  } catch (error) {
    return attachments.map(one => ({ name: nameOf(one), error: terminal.mask(messageOf(error)) }))
  } finally {
    end()
  }
}

/** Undefined if neither a comment nor a report is wanted. An error of it, such as a missing token, does not end the upload. */
async function loadReviewing(
  { comment = false, commentTitle, commentName, report, server }: UploadReporterOptions,
  shard: Shard | undefined,
  terminal: Terminal,
  signal: AbortSignal,
): Promise<ReviewImages | undefined> {
  if (!comment && report === undefined) return undefined
  const { openReviewing } = await import('./reviewing.ts')
  const named = { ...(commentTitle && { commentTitle }), ...(commentName && { commentName }) }
  const where = { ...(report && { report }), ...(server && { server }) }
  // Outside of CI, it is not known which shards belong together.
  const part = shard && runIdOf(terminal.env) !== undefined ? { shard } : {}
  return openReviewing({ comment, ...named, ...where, ...part }, terminal, signal).catch((error: unknown) => {
    terminal.note(oneLine(terminal.mask(messageOf(error))))
    return undefined
  })
}

const TOO_LATE = 'the upload did not finish within the time limit'

const nameOf = ({ test, name }: Attachment) => `${test}/${name}`

const sourceOf = ({ source, fileName }: Attachment) =>
  typeof source === 'string' ? { path: source, name: fileName } : { content: source, name: fileName }

function print(attachments: readonly Attachment[], results: readonly Result[]): void {
  const stored = results.filter(one => one.url !== undefined).length
  const lines = [`  Attachments: ${stored} of ${results.length} uploaded`]
  let last: string | undefined
  for (const [index, { test, name }] of attachments.entries()) {
    const { url, error = '' } = results[index] ?? {}
    if (test !== last) lines.push('', `    ${oneLine(test)}`)
    last = test
    lines.push(`      ${oneLine(name)}: ${oneLine(url ?? `not uploaded: ${error}`)}`)
    const viewer = traceViewerOf({ name, ...(url !== undefined && { url }) })
    if (viewer !== undefined) lines.push(`      ${oneLine(name)} opens at ${viewer}`)
  }
  process.stdout.write(`\n${lines.join('\n')}\n`)
}
