import { randomBytes } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, onTestFinished } from 'vitest'
import { inFile } from '../body.ts'
import { systemCode, UploadError } from '../errors.ts'
import { isTransient } from '../http/network.ts'
import type { Stored, Target, UploadObject } from '../providers/contract.ts'
import { listen } from './listen.ts'
import { bytesOf, objectOf, sha256 } from './objects.ts'
import type { Absence, ContractSetup, FarEnd } from './setup.ts'

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

/** Stores two objects under one key at once. A put that verifies its object may find the other one; it must be retryable then. */
export async function expectOneWhole(setup: ContractSetup, key: string, put: Put): Promise<void> {
  const objects = [objectOf(key, randomBytes(200_000)), objectOf(key, randomBytes(150_000))]
  const puts = await Promise.allSettled(objects.map(object => put(object)))
  const lostPuts = puts.filter(one => one.status === 'rejected')
  if (setup.target.traits?.atomic) expect(lostPuts).toEqual([])
  for (const lost of lostPuts)
    expect(lost.reason).toMatchObject({ code: 'destination_failed', retryable: true })
  const stored = puts.find(one => one.status === 'fulfilled')?.value
  if (stored === undefined) expect.fail('none was stored')
  const found = await setup.fetch(stored)
  const wholes = await Promise.all(objects.map(bytesOf))
  expect(wholes.some(whole => whole.equals(found))).toBe(true)
}

export function expectNoSecrets({ secrets }: ContractSetup, text: string): void {
  expect(secrets).not.toHaveLength(0)
  expect(text).not.toBe('')
  for (const secret of secrets)
    for (const form of [secret, encodeURIComponent(secret), Buffer.from(secret).toString('base64')])
      expect(text).not.toContain(form)
}

/** Expects that `place` depends on where the objects are, and not on the credentials. */
export async function expectStablePlace(setup: ContractSetup): Promise<void> {
  const { location } = setup.target
  expect(location).toMatch(/^[a-z][\w+.-]*[:/].*\/$/s)
  if (setup.without?.credentials !== undefined) return
  const other = await required(setup.withBadCredentials, 'withBadCredentials', 'credentials')()
  onTestFinished(() => other.close?.())
  expect(other.location).toBe(location)
  expectNoSecrets(setup, String(location))
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
  return error instanceof UploadError ? error.retryable : isTransient(systemCode(error))
}

/** Expects a signed URL that opens the object. If URLs expire, the same URL without its signature must not open it. */
export async function expectSigned(
  target: Target,
  object: UploadObject,
  method: 'GET' | 'HEAD',
): Promise<string> {
  const signed = await target.sign?.(object.key, method, 60, new AbortController().signal)
  if (signed === undefined) expect.fail('nothing was signed')
  const { url, forS } = signed
  expectCleanUrl(url)
  expect(forS).toBe(60)
  const response = await fetch(url, { method })
  expect(response.status).toBe(200)
  const body = Buffer.from(await response.arrayBuffer())
  expect(body.equals(method === 'HEAD' ? Buffer.alloc(0) : await bytesOf(object))).toBe(true)
  if (target.traits?.linksExpire) expect((await fetch(url.replace(/\?.*/s, ''))).ok).toBe(false)
  return url
}

/** Removes all objects of a folder but one concurrently, each twice, and stores one of them again. */
export async function expectSwept(
  { target, fetch: fetchBack }: ContractSetup,
  folder: string,
  put: Put,
): Promise<void> {
  const content = randomBytes(1000)
  const removed = ['a.bin', 'b.bin', 'c.bin', 'd.bin'].map(name => objectOf(`${folder}/${name}`, content))
  const stored: Stored[] = []
  for (const object of removed) stored.push(await put(object))
  const kept = await put(objectOf(`${folder}/kept.bin`, content))
  await Promise.all(
    [...removed, ...removed].map(({ key }) => target.remove?.(key, new AbortController().signal)),
  )
  for (const one of stored) await expect(fetchBack(one)).rejects.toThrow()
  const again = await put(objectOf(`${folder}/a.bin`, content))
  for (const one of [kept, again]) expect((await fetchBack(one)).equals(content)).toBe(true)
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

/** Uploads to a server that reads everything and never responds, and aborts the upload. */
export async function putInSilence({ open }: FarEnd, object: UploadObject): Promise<unknown> {
  const sockets = new Set<Socket>()
  const abort = new AbortController()
  const server = createServer(socket => {
    sockets.add(socket.on('error', () => {}))
    socket.once('data', () => abort.abort()).resume()
  })
  const target = await open(await listen(server))
  onTestFinished(async () => {
    await target.close?.()
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return target.put(object, abort.signal)
}

/** Stores all objects concurrently, or one by one if the target is serial. */
export async function putTogether(
  { traits }: Target,
  objects: readonly UploadObject[],
  put: Put,
): Promise<Stored[]> {
  if (!traits?.serial) return Promise.all(objects.map(object => put(object)))
  const stored: Stored[] = []
  for (const object of objects) stored.push(await put(object))
  return stored
}

export async function expectKeyRefused(target: Target, key: string): Promise<void> {
  const { signal } = new AbortController()
  const refusal = { code: 'destination_failed', message: expect.stringContaining('object key is invalid') }
  await expect(target.put(objectOf(key, Buffer.from('x')), signal)).rejects.toMatchObject(refusal)
  if (target.remove) await expect(target.remove(key, signal)).rejects.toMatchObject(refusal)
  if (target.exists) await expect(target.exists(key, signal)).rejects.toMatchObject(refusal)
  if (target.sign) await expect(target.sign(key, 'GET', 60, signal)).rejects.toMatchObject(refusal)
}

export async function expectRemoved(
  { target, fetch: fetchBack }: ContractSetup,
  key: string,
  put: Put,
): Promise<void> {
  const { signal } = new AbortController()
  await expect(target.exists?.(key, signal)).resolves.toBe(false)
  const stored = await put(objectOf(key, randomBytes(1000)))
  await expect(target.exists?.(key, signal)).resolves.toBe(true)
  await target.remove?.(key, signal)
  await expect(target.exists?.(key, signal)).resolves.toBe(false)
  await expect(fetchBack(stored)).rejects.toThrow()
}
