import { hash } from 'node:crypto'
import {
  appendFile,
  mkdir,
  readdir,
  rename,
  rm,
  symlink,
  truncate,
  utimes,
  writeFile,
} from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { expect, it, onTestFinished } from 'vitest'
import { openPart } from '../../../src/client/api/part.ts'
import type { Context } from '../../../src/client/context.ts'
import { findEntries } from '../../../src/client/entries.ts'
import { prepareReview } from '../../../src/client/reports/compare.ts'
import { findEarlier } from '../../../src/client/reports/earlier.ts'
import { imagesOf } from '../../../src/client/reports/images.ts'
import { makeDirectory } from '../../helpers/directory.ts'

const never = new AbortController().signal

it('a file that vanishes between listing and sending is told as such', async () => {
  const cwd = await makeDirectory()
  await writeFile(join(cwd, 'a.png'), 'x')
  const [entry] = await findEntries(['a.png'], {}, { cwd, platform: 'linux' })
  await rm(join(cwd, 'a.png'))
  await expect(openPart(entry!, {} as Context, never)).rejects.toThrow(
    'the file was deleted or changed before it was sent',
  )
})

it.each<[string, (path: string) => Promise<void>]>([
  ['grows', path => appendFile(path, 'x')],
  ['shrinks', path => truncate(path, 3)],
  ['gets other bytes, as many as before', path => writeFile(path, 'erutcip')],
])('a file that %s after its hash was taken is not sent', async (_, change) => {
  const cwd = await makeDirectory()
  const path = join(cwd, 'a.png')
  await writeFile(path, 'picture')
  await utimes(path, 1, 1) // a clock may stand still for some ms
  const [entry] = await findEntries(['a.png'], {}, { cwd, platform: 'linux' })
  const part = await openPart(entry!, {} as Context, never)
  onTestFinished(() => part.close())
  const read = () => buffer(part.content!.read(new AbortController().signal))
  expect((await read()).toString()).toBe('picture')
  await change(path)
  await expect(read()).rejects.toMatchObject({
    code: 'source_failed',
    message: 'the file changed while it was being sent',
  })
})

it.runIf(process.platform === 'linux').each([[true], [false]])(
  'attack: a name that leads elsewhere after it was found is not sent, nor is what takes its place later, in a list: %s',
  async isLiteral => {
    const cwd = await makeDirectory()
    await mkdir(join(cwd, 'shots'))
    await writeFile(join(cwd, 'shots/a.png'), 'picture')
    await mkdir(join(cwd, '.secret'))
    await writeFile(join(cwd, '.secret/a.png'), 'secret!')
    const [entry] = await findEntries(['shots/a.png'], { isLiteral }, { cwd, platform: 'linux' })
    const part = await openPart(entry!, {} as Context, never)
    await rename(join(cwd, 'shots'), join(cwd, 'aside'))
    await symlink('.secret', join(cwd, 'shots'))
    const chunks = part.content?.read(new AbortController().signal)
    expect((await buffer(chunks!)).toString()).toBe('picture')
    await part.close()
    await expect(openPart(entry!, {} as Context, never)).rejects.toThrow('it is a symlink to .secret')
  },
)

it('Ctrl-C ends the hash of a file that is larger than anybody would wait for', async () => {
  const cwd = await makeDirectory()
  await writeFile(join(cwd, 'a.bin'), '')
  await truncate(join(cwd, 'a.bin'), 1e12)
  const [entry] = await findEntries(['a.bin'], {}, { cwd, platform: 'linux' })
  const stopped = new AbortController()
  const prepared = openPart(entry!, {} as Context, stopped.signal)
  setTimeout(() => stopped.abort('Ctrl-C'), 20)
  await expect(prepared).rejects.toBe('Ctrl-C')
  const nothing = async () => undefined
  const options = { findDifference: nothing, makeSmall: nothing, threshold: 0, fetch: nothing, note() {} }
  const context = { cwd, platform: 'linux', env: {}, stdin: Readable.from([]), note() {} } as const
  const earlier = await findEarlier('.', nothing, context, stopped.signal)
  const found = await prepareReview(earlier, imagesOf([entry!]), options, stopped.signal)
  expect(found.entries).toEqual([])
})

it('standard input larger than memory should be is kept in a file that is gone when it was sent', async () => {
  const parts = Array.from({ length: 40 }, (_, index) => Buffer.alloc(1024 * 1024, `${index}`))
  const [entry] = await findEntries(['-'], {}, { cwd: '.', platform: 'linux' })
  const [temporary, before] = [await makeDirectory(), process.memoryUsage().arrayBuffers]
  const context = { env: { TMPDIR: temporary }, stdin: Readable.from(parts) } as Partial<Context> as Context
  const part = await openPart(entry!, context, never)
  expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(8 * 1024 * 1024)
  const chunks: Buffer[] = []
  for await (const chunk of part.content!.read(never)) chunks.push(Buffer.from(chunk))
  const sent = Buffer.concat(chunks)
  expect(sent.equals(Buffer.concat(parts))).toBe(true)
  expect(part.facts).toMatchObject({ size: sent.length, sha256: hash('sha256', sent) })
  await part.close()
  expect(await readdir(temporary)).toEqual([])
})
