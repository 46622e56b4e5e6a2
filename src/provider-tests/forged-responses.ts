import { expect, onTestFinished } from 'vitest'
import type { Stored, Target, UploadObject } from '../providers/contract.ts'
import { startFaultProxy } from './fault-proxy.ts'
import { bytesOf } from './objects.ts'
import type { FarEnd } from './setup.ts'

const PAGE = '<!DOCTYPE html><html><head><title>Log in</title></head><body>Please log in</body></html>'
/** Headers that web servers send with pages. */
const PAGE_HEADERS = { 'content-type': 'text/html', etag: '"65f0c3a1-54"', 'x-request-id': '7f3a' }

/** Responses of gateways, login pages and other servers. None of them proves that an operation succeeded. */
const FORGED = [
  { status: 200, headers: PAGE_HEADERS, body: PAGE },
  { status: 200, body: '' },
  {
    status: 200,
    headers: { 'content-type': 'application/json' },
    body: '{"ok":true,"success":true,"status":true,"code":200,"message":"hello","url":"http://127.0.0.1/login"}',
  },
  { status: 201, body: '' },
  { status: 204 },
  { status: 302, headers: { location: '/login/' }, body: '' },
] as const

const never = () => new AbortController().signal

/**
 * Forges the response to each request of an operation, one request at a time, and then to all requests. `judge` checks the
 * result if the operation succeeds anyway.
 */
async function forgeResponses<T>(
  { port, open }: FarEnd,
  run: (target: Target) => Promise<T>,
  judge: (result: T, forged: string) => Promise<void>,
): Promise<void> {
  let forging: { from: number; to: number; answer: (typeof FORGED)[number] } | undefined
  let count = 0
  const proxy = await startFaultProxy(port, ({ line }) => {
    if (line.includes(' /login/')) return FORGED[0]
    const index = count++
    return forging && index >= forging.from && index < forging.to ? forging.answer : undefined
  })
  onTestFinished(() => proxy.close())

  async function attempt(): Promise<{ result: T } | undefined> {
    count = 0
    const target = await open(proxy.port)
    try {
      return { result: await run(target) }
    } catch {
      return undefined
    } finally {
      await target.close?.()
    }
  }

  expect(await attempt(), 'no response was forged yet').toBeDefined()
  const requests = count
  const turns = Array.from({ length: requests }, (_, from) => ({ from, to: from + 1 }))
  for (const turn of [{ from: 0, to: Number.POSITIVE_INFINITY }, ...turns]) {
    for (const answer of FORGED) {
      forging = { ...turn, answer }
      const done = await attempt()
      forging = undefined
      const forged = `request ${turn.from} of ${requests} answered ${answer.status} "${'body' in answer ? answer.body : ''}"`
      if (done) await judge(done.result, forged)
    }
  }
}

/** Expects that a put with a forged response fails, or that its object was stored. */
export async function expectConfirmedPuts(
  forgeable: FarEnd,
  newObject: () => UploadObject,
  fetch: (stored: Stored) => Promise<Buffer>,
): Promise<void> {
  await forgeResponses(
    forgeable,
    async target => {
      const object = newObject()
      return { object, stored: await target.put(object, never()) }
    },
    async ({ object, stored }, forged) => {
      const found = await fetch(stored).catch(() => undefined)
      expect(found?.equals(await bytesOf(object)), `a put succeeded with ${forged}`).toBe(true)
    },
  )
}

/** Expects that forged responses never make `exists` or `remove` report a wrong result. */
export async function expectConfirmedLookups(
  forgeable: FarEnd,
  truth: Target,
  newObject: () => UploadObject,
  fetch: (stored: Stored) => Promise<Buffer>,
): Promise<void> {
  const there = newObject()
  let stored = await truth.put(there, never())
  for (const key of truth.exists ? [there.key, newObject().key] : []) {
    await forgeResponses(
      forgeable,
      async target => target.exists?.(key, never()),
      async (found, forged) => expect(found, `it was looked for with ${forged}`).toBe(key === there.key),
    )
  }
  if (!truth.remove) return
  const isThere = () =>
    truth.exists?.(there.key, never()) ??
    fetch(stored).then(
      () => true,
      () => false,
    )
  await forgeResponses(
    forgeable,
    async target => {
      stored = await truth.put(there, never())
      await target.remove?.(there.key, never())
    },
    async (_, forged) => expect(await isThere(), `it was removed with ${forged}`).toBe(false),
  )
}

/** Expects that `check` fails if all responses are forged. */
export async function expectConfirmedChecks({ port, open }: FarEnd): Promise<void> {
  for (const answer of FORGED) {
    const proxy = await startFaultProxy(port, ({ line }) => (line.includes(' /login/') ? FORGED[0] : answer))
    onTestFinished(() => proxy.close())
    const target = await open(proxy.port)
    onTestFinished(() => target.close?.())
    const check = target.check?.(never())
    await expect(check, `all was answered ${answer.status}`).rejects.toThrow()
  }
}
