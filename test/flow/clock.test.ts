import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { createClock } from '../../src/flow/clock.ts'
import { createSqliteStore } from '../../src/store/sqlite.ts'
import { createFinalizer } from '../../src/uploader/jobs/finalizer.ts'
import { createIdempotency } from '../../src/uploader/jobs/idempotency.ts'
import { makeDirectory } from '../helpers/directory.ts'

const HOUR_MS = 60 * 60 * 1000

it('goes on when the clock of the machine is set, until it follows that', () => {
  let [wall, steady] = [1_000_000, 50]
  const clock = createClock(
    () => wall,
    () => steady,
  )
  wall += HOUR_MS + 20
  steady += 20
  expect(clock.now()).toBe(1_000_020)
  expect(clock.setBy()).toBe(HOUR_MS)
  clock.adjust(clock.setBy())
  expect(clock.now()).toBe(wall)
  wall -= 1000 // a clock that is put right by little
  expect(clock.setBy()).toBe(0)
})

it('an idempotency key that was sent under the wrong clock is known once that is right, also after a restart', async () => {
  const path = join(await makeDirectory(), 'store.db')
  let [wall, steady] = [Date.now() - 30 * 24 * HOUR_MS, 0]
  let runs = 0

  function open() {
    const store = createSqliteStore(path)
    const clock = createClock(
      () => wall,
      () => steady,
    )
    const finalizer = createFinalizer({
      store,
      clock,
      hooks: [],
      keepDays: 7,
      roundMs: 20,
      env: {},
      mask: text => text,
      now: () => new Date(wall),
      warn() {},
    })
    onTestFinished(() => finalizer.close())
    const idempotency = createIdempotency(store, finalizer.owner, undefined, clock.now)
    const ask = () =>
      idempotency.answerOnce(
        'key',
        'fingerprint',
        async () => ({ status: 200, body: `${++runs}`, jobId: undefined, keep: true }),
        new AbortController().signal,
      )
    return { store, finalizer, ask }
  }

  const first = open()
  expect(await first.ask()).toMatchObject({ body: '1' })
  wall = Date.now()
  expect(await first.ask()).toMatchObject({ body: '1' })
  first.finalizer.start()
  await expect
    .poll(async () => (await first.store.repetition('key'))?.createdAt)
    .toBeGreaterThan(wall - HOUR_MS)
  expect(await first.ask()).toMatchObject({ body: '1' })
  await first.finalizer.close()

  const second = open()
  expect(await second.ask()).toMatchObject({ body: '1' })
  steady += 25 * HOUR_MS
  wall += 25 * HOUR_MS
  expect(await second.ask()).toMatchObject({ body: '2' })
})
