import { readFileSync, statSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, onTestFinished } from 'vitest'
import { inFile } from '../body.ts'
import { UploadError } from '../errors.ts'
import { isTransient } from '../http/network.ts'
import type { Stored, UploadObject } from '../providers/contract.ts'
import { sha256 } from './objects.ts'
import type { Absence, ContractSetup } from './setup.ts'

type Put = (object: UploadObject) => Promise<Stored>

/** Expects an absolute URL, or one relative to the server's URL, in normal form and safe in Markdown, HTML and shells. */
export function expectCleanUrl(url: string): void {
  const base = 'http://127.0.0.1/'
  const absolute = new URL(url, base)
  expect(absolute.href).toBe(/^https?:/.test(url) ? url : base + url)
  expect(absolute.pathname).not.toMatch(/[\s"'<>()*]/)
}

export async function expectStored(setup: ContractSetup, stored: Stored, bytes: Buffer): Promise<void> {
  const found = await setup.fetch(stored)
  // `toEqual` needs minutes to report a difference between buffers of megabytes.
  expect(found.length).toBe(bytes.length)
  expect(found.equals(bytes)).toBe(true)
}

export function expectNoSecrets({ secrets }: ContractSetup, text: string): void {
  expect(secrets).not.toHaveLength(0)
  expect(text).not.toBe('')
  for (const secret of secrets)
    for (const form of [secret, encodeURIComponent(secret), Buffer.from(secret).toString('base64')])
      expect(text).not.toContain(form)
}

/** Returns a member that the setup must have unless it declares in `without` why it is missing. */
export function required<T>(hook: T | undefined, member: string, absence: Absence): T {
  if (hook === undefined)
    throw new Error(`set "${member}", or explain in "without.${absence}" why it is missing`)
  return hook
}

/** Runs work that may fail, and expects that it leaves no uncaught error or unhandled rejection. */
export async function withoutStrayErrors(work: () => Promise<unknown>): Promise<void> {
  const stray: unknown[] = []
  const note = (error: unknown) => void stray.push(error)
  process.on('unhandledRejection', note)
  process.on('uncaughtException', note)
  try {
    await work()
    for (let turn = 0; turn < 20; turn++) await nextTurn()
  } finally {
    process.off('unhandledRejection', note)
    process.off('uncaughtException', note)
  }
  expect(stray).toEqual([])
}

/** Returns whether the server retries an upload after this error. */
export function isRetried(error: unknown): boolean {
  return error instanceof UploadError ? error.retryable : isTransient(error)
}

/** Expects that a put does not modify the file of its payload, because other destinations still read it. */
export async function expectFileKept(
  { fetch: fetchBack }: ContractSetup,
  object: UploadObject,
  put: Put,
): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'contract-'))
  onTestFinished(() => rm(directory, { recursive: true }))
  const path = join(directory, 'payload')
  await writeFile(path, object.read(new AbortController().signal), { mode: 0o600 })
  const { mode, ino } = statSync(path)
  const stored = await put({ ...object, path, read: inFile(path, object.size).read })
  expect(sha256(await fetchBack(stored))).toBe(object.sha256)
  expect(sha256(readFileSync(path))).toBe(object.sha256)
  expect(statSync(path)).toMatchObject({ mode, ino })
}
