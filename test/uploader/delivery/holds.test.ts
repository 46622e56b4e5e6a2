import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { createSqliteStore } from '../../../src/store/sqlite.ts'
import { createHold } from '../../../src/uploader/delivery/holds.ts'
import { makeDirectory } from '../../helpers/directory.ts'

const OBJECT = { destination: 'local/a', key: 'a.png' }
const { signal } = new AbortController()

async function open(isHeld = true) {
  const store = createSqliteStore(join(await makeDirectory(), 'store.db'))
  onTestFinished(() => store.close())
  const as =
    (id: string, key = OBJECT.key) =>
    (content: string, until = signal) =>
      createHold(store, { id, owner: 'me' }, () => isHeld)(OBJECT.destination, key, content, until)
  const remove = () =>
    store.holdKey({ ...OBJECT, content: 'removal', holder: 'removal', owner: 'sweeper', now: Date.now() })
  return { store, as, remove }
}

it('jobs with the same bytes hold a key together, one with others does not', async () => {
  const { store, as } = await open()
  expect(await as('one')('x')).toBe('free')
  expect(await as('one')('x'), 'again').toBe('free')
  expect(await as('two')('x')).toBe('free')
  expect(await as('three')('y')).toBe('taken')
  await store.releaseKeys('one')
  expect(await as('three')('y'), 'one of both is left').toBe('taken')
  await store.releaseKeys('two')
  expect(await as('three')('y')).toBe('free')
})

it('another spelling of a key is another file, or the same: it is not had together', async () => {
  const { as } = await open()
  expect(await as('one')('x')).toBe('free')
  expect(await as('two', 'A.PNG')('x')).toBe('taken')
})

it('a removal is waited for, and said, since what was there may be gone', async () => {
  const { store, as, remove } = await open()
  await remove()
  const waiting = as('one')('x')
  expect(await Promise.race([waiting, new Promise(resolve => setTimeout(resolve, 100, 'waits'))])).toBe(
    'waits',
  )
  await store.releaseKeys('removal')
  expect(await waiting).toBe('waited')
  expect(await as('two')('y')).toBe('taken')
})

it('who waits for a removal leaves with the request, and holds nothing', async () => {
  const { store, as, remove } = await open()
  await remove()
  const request = new AbortController()
  const waiting = as('one')('x', request.signal)
  request.abort(new Error('the client is gone'))
  await expect(waiting).rejects.toThrow('the client is gone')
  await store.releaseKeys('removal')
  expect(await as('two')('y')).toBe('free')
})

it('where nothing goes again and nobody else stores, the store is not asked', async () => {
  const { as, remove } = await open(false)
  await remove()
  expect(await as('one')('x')).toBe('free')
  expect(await as('two')('y')).toBe('free')
})
