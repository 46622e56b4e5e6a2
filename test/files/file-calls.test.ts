import { writevSync } from 'node:fs'
import { mkdtemp, open, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { closeFile, openFile, writeAll } from '../../src/files/file-calls.ts'

const CHUNKS = ['first ', '', 'second ', 'third'].map(text => Buffer.from(text))

async function makeDirectory(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'file-calls-'))
  onTestFinished(() => rm(path, { recursive: true, force: true }))
  return path
}

it('writes every chunk', async () => {
  const path = join(await makeDirectory(), 'file')
  const file = await openFile(path, 'wx', 0o600)
  await writeAll(file, CHUNKS)
  await writeAll(file, [])
  await closeFile(file)
  expect(await readFile(path, 'utf8')).toBe('first second third')
})

it('what a call did not write is written by the next', async () => {
  const path = join(await makeDirectory(), 'file')
  const file = await open(path, 'w')
  let calls = 0
  const write = async (fd: number, chunks: readonly Uint8Array[]) => {
    calls++
    return { bytesWritten: writevSync(fd, [Buffer.concat(chunks).subarray(0, 5)]) }
  }
  await writeAll(file.fd, CHUNKS, write)
  await file.close()
  expect(await readFile(path, 'utf8')).toBe('first second third')
  expect(calls).toBe(4)
})
