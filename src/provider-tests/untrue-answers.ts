import { expect, onTestFinished } from 'vitest'
import type { Stored, Target, UploadObject } from '../providers/contract.ts'
import { startFaultProxy } from './fault-proxy.ts'
import type { FarEnd } from './setup.ts'

const PAGE = '<!DOCTYPE html><html><head><title>Log in</title></head><body>Please log in</body></html>'
/** As web servers give them to their pages. */
const PAGE_HEADERS = { 'content-type': 'text/html', etag: '"65f0c3a1-54"', 'x-request-id': '7f3a' }

/** What gateways, login walls and other people's servers say, and what is no proof of anything. */
const UNTRUE = [
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
 * Answers each request of an operation untruly in its turn, and all of them at once. `judge` gets what the operation came
 * to, and says whether that is so.
 */
async function tellUntruths<T>(
  { port, open }: FarEnd,
  run: (target: Target) => Promise<T>,
  judge: (result: T, untruth: string) => Promise<void>,
): Promise<void> {
  let untrue: { from: number; to: number; answer: (typeof UNTRUE)[number] } | undefined
  let count = 0
  const proxy = await startFaultProxy(port, ({ line }) => {
    if (line.includes(' /login/')) return UNTRUE[0]
    const index = count++
    return untrue && index >= untrue.from && index < untrue.to ? untrue.answer : undefined
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

  expect(await attempt(), 'nothing was untrue yet').toBeDefined()
  const requests = count
  const turns = Array.from({ length: requests }, (_, from) => ({ from, to: from + 1 }))
  for (const turn of [{ from: 0, to: Number.POSITIVE_INFINITY }, ...turns]) {
    for (const answer of UNTRUE) {
      untrue = { ...turn, answer }
      const done = await attempt()
      untrue = undefined
      const untruth = `request ${turn.from} of ${requests} answered ${answer.status} "${'body' in answer ? answer.body : ''}"`
      if (done) await judge(done.result, untruth)
    }
  }
}

/** What was answered untruly must either fail, or be there all the same. */
export async function expectTruePuts(
  forgeable: FarEnd,
  newObject: () => UploadObject,
  fetch: (stored: Stored) => Promise<Buffer>,
): Promise<void> {
  await tellUntruths(
    forgeable,
    async target => {
      const object = newObject()
      return { object, stored: await target.put(object, never()) }
    },
    async ({ object, stored }, untruth) => {
      const found = await fetch(stored).catch(() => undefined)
      expect(found?.equals(await object.bytes()), `a put succeeded with ${untruth}`).toBe(true)
    },
  )
}

/** The same for what is asked about, there or not, and for what is removed. */
export async function expectTrueFinds(
  forgeable: FarEnd,
  truth: Target,
  newObject: () => UploadObject,
  fetch: (stored: Stored) => Promise<Buffer>,
): Promise<void> {
  const there = newObject()
  let stored = await truth.put(there, never())
  for (const key of truth.exists ? [there.key, newObject().key] : []) {
    await tellUntruths(
      forgeable,
      async target => target.exists?.(key, never()),
      async (found, untruth) => expect(found, `it was looked for with ${untruth}`).toBe(key === there.key),
    )
  }
  if (!truth.remove) return
  const isThere = () =>
    truth.exists?.(there.key, never()) ??
    fetch(stored).then(
      () => true,
      () => false,
    )
  await tellUntruths(
    forgeable,
    async target => {
      stored = await truth.put(there, never())
      await target.remove?.(there.key, never())
    },
    async (_, untruth) => expect(await isThere(), `it was removed with ${untruth}`).toBe(false),
  )
}

/** What answers nothing but untruths is no destination that works. */
export async function expectTrueChecks({ port, open }: FarEnd): Promise<void> {
  for (const answer of UNTRUE) {
    const proxy = await startFaultProxy(port, ({ line }) => (line.includes(' /login/') ? UNTRUE[0] : answer))
    onTestFinished(() => proxy.close())
    const target = await open(proxy.port)
    onTestFinished(() => target.close?.())
    const check = target.check?.(never())
    await expect(check, `all was answered ${answer.status}`).rejects.toThrow()
  }
}
