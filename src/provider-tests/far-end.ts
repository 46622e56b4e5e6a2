import { once } from 'node:events'
import { createServer } from 'node:net'
import { expect } from 'vitest'
import { messageOf, UploadError } from '../errors.ts'
import type { Target, UploadObject } from '../providers/contract.ts'
import { startBreakingProxy } from './cut-proxy.ts'
import { isRetried } from './expect.ts'
import { listen } from './listen.ts'
import type { FarEnd } from './setup.ts'

/** Number of steps that are tested one by one, with a reset and a close. Later steps are similar, so ever fewer are tested. */
const FIRST_STEPS = 6
/** More steps than any upload of a small file has. */
const MAX_STEPS = 200
/** A put that still waits this long after a reset connection hangs, in milliseconds. */
const PUT_LIMIT_MS = 20_000

/** Expects that a failure names the object and its destination, and advises what to do. `openProvider` names the destination "Default". */
export function expectMessage(error: unknown, key: string, name = 'Default'): void {
  if (!(error instanceof UploadError)) return
  expect(error.message).toMatch(/^Could not (?:store|look for|remove|sign a link to) /)
  expect(error.message).toContain(key)
  expect(error.message).toContain(`/${name}: `)
  expectAdvice(error)
}

/** Expects a second sentence, which is the advice, and no URL. The failure of a check concerns no object. */
function expectAdvice(error: unknown): void {
  if (!(error instanceof UploadError)) return
  expect(error.message).toMatch(/\S[.!?…] [A-Z]/)
  expect(error.message.at(-1)).toBe('.')
  expect(error.message).not.toMatch(/https?:\/\//i)
}

/** Expects that the check fails. Returns its message, or nothing if the target has no check. */
export async function expectCheckRefused({ check }: Target): Promise<string[]> {
  if (!check) return []
  const error = await check(new AbortController().signal).then(() => expect.fail('it passed'), returnError)
  expectAdvice(error)
  return [messageOf(error)]
}

/** Expects that each operation fails on a closed port with a message that names the object and the destination. */
export async function expectUnreachable({ open }: FarEnd, object: UploadObject): Promise<void> {
  const target = await open(await closedPort())
  const { signal } = new AbortController()
  const { exists, remove } = target
  const operations = [
    () => target.put(object, signal),
    ...(exists ? [() => exists(object.key, signal)] : []),
    ...(remove ? [() => remove(object.key, signal)] : []),
  ]
  for (const operation of operations) {
    const error = await operation().then(() => expect.fail('nothing listens there'), returnError)
    expect(error).toMatchObject({ code: 'destination_failed', retryable: true })
    expectMessage(error, object.key)
  }
  await expectCheckRefused(target)
  await target.close?.()
}

/** Breaks the connection of a put at each step: before the first response, and at each packet. */
export async function expectSteps(far: FarEnd, newObject: () => UploadObject): Promise<void> {
  const proxy = await startStepProxy(far.port)
  async function breakOff(step: number, how: 'resets' | 'closes'): Promise<boolean> {
    proxy.failAt(step, how)
    const [target, object] = [await far.open(proxy.port), newObject()]
    const error = await target.put(object, AbortSignal.timeout(PUT_LIMIT_MS)).then(() => {}, returnError)
    if (error !== undefined) expect(error, `it ${how} at step ${step}`).toBeInstanceOf(UploadError)
    expectMessage(error, object.key)
    const hasFailed = proxy.hasFailed()
    if (!hasFailed) expect(error, 'nothing failed any more').toBeUndefined()
    await persist(() => target.put(newObject(), AbortSignal.timeout(PUT_LIMIT_MS)))
    await target.close?.()
    return hasFailed
  }
  try {
    let step = 0
    while (await breakOff(step, 'resets')) {
      if (step < FIRST_STEPS) await breakOff(step, 'closes')
      step = Math.ceil(step < FIRST_STEPS ? step + 1 : step * 1.4)
      expect(step).toBeLessThan(MAX_STEPS)
    }
    expect(step).toBeGreaterThan(0)
  } finally {
    proxy.close()
  }
}

const returnError = (error: unknown) => error

/** Retries, because only the next put may notice that a connection has broken. */
async function persist(put: () => Promise<unknown>): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    const error = await put().then(() => {}, returnError)
    if (error === undefined) return
    if (attempt === 3 || !isRetried(error)) throw error
  }
}

async function closedPort(): Promise<number> {
  const server = createServer()
  const port = await listen(server)
  server.close()
  await once(server, 'close')
  return port
}

async function startStepProxy(targetPort: number) {
  let [step, failing, how]: [number, number, 'resets' | 'closes'] = [0, 0, 'resets']
  const proxy = await startBreakingProxy(targetPort, from =>
    from !== 'client' && step++ === failing ? how : undefined,
  )
  return {
    ...proxy,
    /** Resets the step counter. The step after so many steps fails. */
    failAt(count: number, way: 'resets' | 'closes') {
      ;[step, failing, how] = [0, count, way]
    },
    hasFailed: () => step > failing,
  }
}
