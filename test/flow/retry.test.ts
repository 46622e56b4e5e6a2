import { describe, expect, it } from 'vitest'
import { UploadError } from '../../src/errors.ts'
import { type RetryPolicy, retry } from '../../src/flow/retry.ts'

const transient = (retryAfterS?: number) =>
  new UploadError('destination_failed', 'busy', {
    retryable: true,
    ...(retryAfterS !== undefined && { retryAfterS }),
  })

/** How often it was tried, and what came of it. */
async function run(errors: unknown[], policy: RetryPolicy, signal = new AbortController().signal) {
  let attempts = 0
  const work = async () => {
    const error = errors[attempts++]
    if (error !== undefined) throw error
    return 'done'
  }
  const result = await retry(work, policy, signal).catch((error: unknown) => error)
  return { attempts, result }
}

describe('a pause', () => {
  it('that is too long, or longer than the time left, is not begun', async () => {
    const error = transient(60)
    expect(await run([error], { attempts: 2, longestPauseMs: 30_000 })).toEqual({
      attempts: 1,
      result: error,
    })
    expect(await run([error], { attempts: 2, leftMs: () => 60_000 })).toEqual({ attempts: 1, result: error })
  })

  it('that would reach beyond the time limit ends with it, and the work is tried once more', async () => {
    const end = performance.now() + 300
    const policy = { attempts: Infinity, leftMs: () => end - performance.now(), isTriedAtEnd: true }
    let lastAt = 0
    const work = async () => {
      lastAt = performance.now()
      throw transient()
    }
    await expect(retry(work, policy, new AbortController().signal)).rejects.toThrow('busy')
    expect(lastAt).toBeGreaterThan(end - 5) // timers may be early by a millisecond
    expect(await run([transient(60)], { attempts: 2, leftMs: () => 10, isTriedAtEnd: true })).toMatchObject({
      attempts: 1,
    })
  })

  it('is left when the signal is aborted, with its reason', async () => {
    const canceller = new AbortController()
    const ended = run([transient(60)], { attempts: 2 }, canceller.signal)
    setTimeout(() => canceller.abort('gone'), 10)
    expect(await ended).toEqual({ attempts: 1, result: 'gone' })
  })
})
