import { expect, it } from 'vitest'
import { findFiles } from '../../src/store/history.ts'
import { removeObjects, withCopies } from '../../src/uploader/remove.ts'
import { openProcess, type TestProcess } from '../helpers/uploader.ts'

/** Two processes of one database with a destination whose removals wait, and an upload that is there. */
async function open() {
  const objects = new Set<string>()
  const removals: (() => void)[] = []
  const target = {
    async put({ key }: { readonly key: string }) {
      objects.add(key)
      return { url: `https://x.example/${key}` }
    },
    exists: async (key: string) => objects.has(key),
    async remove(key: string) {
      await new Promise<void>(resolve => removals.push(resolve))
      objects.delete(key)
    },
  }
  const here = await openProcess({ one: { target } })
  const there = await openProcess({ one: { target } }, {}, here.directory)
  await here.send({ 'a.txt': 'one' })
  return { here, there, objects, removals }
}

async function remove({ uploader, database }: TestProcess) {
  const entries = await database.read(db => findFiles(db, { isRemoved: false, limit: 9 }))
  return removeObjects(await withCopies(entries, uploader, () => true), uploader)
}

it('an upload that begins during a removal waits for it, and stores its file again', async () => {
  const { here, there, objects, removals } = await open()
  const removed = remove(there)
  await expect.poll(() => removals).toHaveLength(1)
  const again = here.send({ 'a.txt': 'one' })
  expect(await remove(here), 'and another removal is refused').toMatchObject([{ kind: 'failed' }])
  removals[0]?.()
  expect(await removed).toEqual([{ kind: 'removed' }])
  expect((await again).outcomes).toMatchObject([{ ok: true, key: 'a.txt' }])
  expect([...objects]).toEqual(['a.txt'])
  const entries = await here.database.read(db => findFiles(db, { limit: 9 }))
  expect(entries.map(({ removedAt }) => removedAt === undefined)).toEqual([true, false])
})
