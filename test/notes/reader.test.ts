import { expect, it, onTestFinished } from 'vitest'
import { createNoteReader } from '../../src/notes/reader.ts'

function startReader(timeoutMs?: number) {
  const reader = createNoteReader(timeoutMs)
  onTestFinished(() => reader.close())
  return reader
}

it('reads notes that are handed in at the same time', async () => {
  const reader = startReader()
  const read = await Promise.all(['![](a.png)', '![](b.png)'].map(note => reader.read(note)))
  expect(read.map(([one]) => one?.target)).toEqual(['a.png', 'b.png'])
})

it('gives a note up over which the parser would sit for minutes, and reads the next one', {
  timeout: 60_000,
}, async () => {
  const reader = startReader(5000)
  await expect(reader.read('![a]('.repeat(200_000))).rejects.toThrow("can't be read within 5 s")
  expect(await reader.read('![](a.png)')).toHaveLength(1)
})
