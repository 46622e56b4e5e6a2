import { expect, it, onTestFinished } from 'vitest'
import { createNoteReader } from '../../../src/client/notes/reader.ts'

function startReader(timeoutMs?: number, signal = new AbortController().signal) {
  const reader = createNoteReader(signal, timeoutMs)
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
  const reader = startReader(3000)
  await expect(reader.read('![a]('.repeat(200_000))).rejects.toThrow('could not be parsed within 3 s')
  expect(await reader.read('![](a.png)')).toHaveLength(1)
})

it('is interrupted at once in the middle of such a note', async () => {
  const canceller = new AbortController()
  const reader = startReader(60_000, canceller.signal)
  await reader.read('![](a.png)')
  const reading = reader.read('![a]('.repeat(200_000))
  const begun = performance.now()
  setTimeout(() => canceller.abort(), 100)
  await expect(reading).rejects.toThrow()
  expect(performance.now() - begun).toBeLessThan(5000)
  await expect(reader.read('![](a.png)')).rejects.toThrow()
})
