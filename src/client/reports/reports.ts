import { randomUUID } from 'node:crypto'
import { dirname, join, resolve } from 'node:path'
import { describeFileError } from '../../errors.ts'
import { appendToFile, replaceFile } from '../../files/replace-file.ts'
import { cleanLink, oneLine, toJson, toJsonLine, toXml } from '../../safe-text.ts'
import type { Context } from '../context.ts'
import { isFailure, type Result } from '../result.ts'
import { formatResultLink } from './format.ts'
import { toSummary } from './summary.ts'

export interface ReportOptions {
  /** Appends outputs of the step to the file that GitHub Actions names. */
  githubOutput?: boolean
  /** Appends Markdown to the file that GitHub Actions names. */
  githubSummary?: boolean
  /** File for `artifacts:reports:dotenv` of GitLab. */
  gitlabDotenv?: string
  /** File for a JUnit report. */
  junit?: string
}

/** What a report is made of: the time in milliseconds, and the Markdown of a comparison, if there is one. */
interface Reported {
  readonly results: readonly Result[]
  readonly ms: number
  readonly summary: string | undefined
}

/** Writes one report after the upload. @throws Error that names the report */
export type Report = (reported: Reported) => Promise<void>

type Make = (reported: Reported, file: string) => string | Promise<string>

/**
 * Opens the files of the reports before anything is uploaded.
 *
 * @throws Error if a file is missing or not writable
 */
export async function openReports(
  { githubOutput, githubSummary, gitlabDotenv, junit }: ReportOptions,
  { env, cwd }: Pick<Context, 'env' | 'cwd'>,
): Promise<readonly Report[]> {
  const reports: Report[] = []
  async function add(option: string, write: (text: string) => Promise<void>, file: string, make: Make) {
    const fail = cantWrite(option, file)
    // Empties the report of an earlier run, so that it is not read as that of this run.
    await write('').catch(fail)
    reports.push(async reported => write(await make(reported, file)).catch(fail))
  }
  async function append(option: string, variable: string, make: Make) {
    const file = env[variable]
    if (!file)
      throw new Error(`${option} requires the environment variable ${variable}, which GitHub Actions sets.`)
    await add(option, text => appendToFile(file, text), file, make)
  }
  const replace = (option: string, file: string, make: Make) =>
    add(option, text => replaceFile(resolve(cwd, file), text, cwd), file, make)

  if (githubOutput)
    await append('--github-output', 'GITHUB_OUTPUT', async ({ results }, file) => {
      const folder = env['RUNNER_TEMP'] || dirname(file)
      const path = join(folder, `upload-server-${randomUUID()}.json`)
      await replaceFile(path, toJson(results), folder).catch(cantWrite('--github-output', path))
      return toOutputs(results, path)
    })
  if (githubSummary)
    await append(
      '--github-summary',
      'GITHUB_STEP_SUMMARY',
      ({ results, summary }) => summary ?? toSummary(results),
    )
  if (gitlabDotenv !== undefined) await replace('--gitlab-dotenv', gitlabDotenv, toDotenv)
  if (junit !== undefined) await replace('--junit', junit, toJunit)
  return reports
}

/** Writes all reports, even if one of them fails. @returns the error messages */
export async function writeReports(
  reports: readonly Report[],
  results: readonly Result[],
  ms: number,
  summary?: string,
): Promise<readonly string[]> {
  const problems: string[] = []
  for (const report of reports)
    await report({ results, ms, summary }).catch((error: Error) => void problems.push(error.message))
  return problems
}

/** @throws Error that names the file, the option and the reason */
export const cantWrite = (option: string, file: string) => (error: unknown) => {
  throw new Error(oneLine(`Could not write ${file} for ${option}: ${describeFileError(error)}.`))
}

const linksOf = (results: readonly Result[]) =>
  results.flatMap(({ url }) => (url === undefined ? [] : [cleanLink(url)]))

/** Linux has a limit of 128 KiB for each variable of an environment, in which steps pass outputs on. Bytes. */
const OUTPUT_BYTES = 96 * 1024

/**
 * The outputs `steps.ID.outputs.NAME`. The delimiter is random, so that a file name can't forge an output.
 *
 * @param path of a file with all results, for lists that are too long
 */
function toOutputs(results: readonly Result[], path: string): string {
  const urls = linksOf(results)
  const markdown = results.flatMap(one =>
    one.url === undefined ? [] : [formatResultLink(one.url, one, 'markdown')],
  )
  const ifShort = (text: string) => (Buffer.byteLength(text) > OUTPUT_BYTES ? '' : text)
  const outputs = {
    url: urls[0] ?? '',
    urls: ifShort(urls.join('\n')),
    markdown: ifShort(markdown.join('\n')),
    json: ifShort(toJsonLine(results)),
    results: path,
    stored: urls.length,
    failed: results.filter(isFailure).length,
  }
  const end = `end-${randomUUID()}`
  return Object.entries(outputs)
    .map(([name, text]) => `${name}<<${end}\n${text}\n${end}\n`)
    .join('')
}

/** Limits of GitLab Free for one report: number of links, and bytes. */
const [DOTENV_LINKS, DOTENV_BYTES] = [16, 5 * 1024]

/** Variables for GitLab, one per line. The last links are omitted if they do not fit. */
function toDotenv({ results }: Reported): string {
  const urls = linksOf(results)
  const lines = [
    `UPLOAD_STORED=${urls.length}`,
    `UPLOAD_FAILED=${results.filter(isFailure).length}`,
    `UPLOAD_URL=${urls[0] ?? ''}`,
    ...urls.slice(0, DOTENV_LINKS).map((url, index) => `UPLOAD_URL_${index + 1}=${url}`),
  ]
  let text = ''
  for (const line of lines) {
    if (Buffer.byteLength(text) + Buffer.byteLength(line) >= DOTENV_BYTES) break
    text += `${oneLine(line)}\n`
  }
  return text
}

/** A JUnit report with one test case per file. */
function toJunit({ results, ms }: Reported): string {
  const failed = results.filter(isFailure).length
  const cases = results.map(one => {
    const body = isFailure(one)
      ? `<failure type="${toXml(one.code ?? 'failed')}" message="${toXml(one.error ?? '')}"/>`
      : `<system-out>${toXml(one.url ?? one.error ?? '')}</system-out>`
    return `    <testcase classname="upload" name="${toXml(one.name)}">${body}</testcase>\n`
  })
  const counts = `tests="${results.length}" failures="${failed}" errors="0" skipped="0" time="${(ms / 1000).toFixed(3)}"`
  return `<?xml version="1.0" encoding="UTF-8"?>\n<testsuites ${counts}>\n  <testsuite name="upload-server upload" ${counts}>\n${cases.join('')}  </testsuite>\n</testsuites>\n`
}
