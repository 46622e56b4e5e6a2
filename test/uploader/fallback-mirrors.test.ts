import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { createNamedSlots } from '../../src/flow/slots.ts'
import { findFiles } from '../../src/store/history.ts'
import { makeDirectory } from '../helpers/directory.ts'
import { download, upload } from '../helpers/form.ts'
import { startApp } from '../helpers/start-app.ts'
import { keysOf, makeBucket, openProcess, type TestDestination } from '../helpers/uploader.ts'

type Options = NonNullable<TestDestination['common']>

/** Two buckets. @param options of `main` */
async function open(options: Options, more: Parameters<typeof openProcess>[1] = {}, others: Options = {}) {
  const [main, other] = [makeBucket(), makeBucket()]
  const destinations = { main: { ...main, common: options }, other: { ...other, common: others } }
  return { main, other, ...(await openProcess(destinations, more)) }
}

const mirror = (required: boolean) => ({ mirrors: [{ destination: 'test/other', required }] })
const FALLBACK = { fallback: 'test/other' }

describe('a fallback', () => {
  it('gets a file when the destination fails, and only then; the outcome and the log say so', async () => {
    const { main, other, send, warnings } = await open(FALLBACK)
    await send({ 'a.txt': 'one' })
    expect([main.puts, other.puts]).toEqual([['a.txt'], []])
    main.next.push('refused')
    const { outcomes } = await send({ 'b.txt': 'two' })
    expect(outcomes).toMatchObject([{ ok: true, destination: 'test/other' }])
    expect(other.objects).toEqual(new Map([['b.txt', 'two']]))
    expect(warnings).toMatchObject([{ message: 'test/main failed; its fallback test/other is used' }])
  })

  it('that fails, too, is named beside the destination', async () => {
    const { main, other, send } = await open(FALLBACK)
    for (const { next } of [main, other]) next.push('refused')
    const [message] = keysOf(await send({ 'a.txt': 'one' }))
    expect(message).toBe('refused Its fallback test/other also failed: refused')
  })

  it('got a file with success when a refusal over a conflict was taken for a failure', async () => {
    const { other, send } = await open({ ...FALLBACK, onConflict: 'error' })
    await send({ 'a.txt': 'one' })
    expect(keysOf(await send({ 'a.txt': 'two' }))).toEqual([
      expect.stringContaining('"a.txt" already exists at test/main'),
    ])
    expect(other.puts).toEqual([])
  })

  it('lay behind a large file that was written to the disk of the broken destination first', async () => {
    const directory = await makeDirectory()
    await writeFile(join(directory, 'blocked'), '')
    const local = {
      broken: { directory: 'blocked/x', serve: true, fallback: 'local/main' },
      main: { directory: 'main', serve: true },
    }
    const app = await startApp({ directory, config: { default: 'local/broken', providers: { local } } })
    const content = Buffer.alloc(9_000_000, 'x')
    const answer = await upload(`${app.url}/upload`, { 'a.png': content })
    expect(answer).toMatchObject({ status: 200, items: [{ destination: 'local/main' }] })
    expect((await download(answer.result[0]!)).equals(content)).toBe(true)
  })
})

describe('mirrors', () => {
  it('get a copy, and the outcome and the history know it', async () => {
    const { other, send, database } = await open(mirror(false))
    const { outcomes } = await send({ 'a.txt': 'one' })
    expect(outcomes).toMatchObject([{ ok: true, mirrors: [{ destination: 'test/other', key: 'a.txt' }] }])
    expect(other.objects).toEqual(new Map([['a.txt', 'one']]))
    const entries = await database.read(db => findFiles(db, { limit: 9 }))
    expect(entries.map(({ destination }) => destination).sort()).toEqual(['test/main', 'test/other'])
  })

  it('that fail are in the outcome and the log, and do not fail the upload', async () => {
    const { other, send, warnings } = await open(mirror(false))
    other.next.push('refused')
    const { outcomes } = await send({ 'a.txt': 'one' })
    expect(outcomes).toMatchObject([
      { ok: true, mirrors: [{ destination: 'test/other', error: expect.any(String) }] },
    ])
    expect(warnings).toMatchObject([{ message: 'Could not store a copy at the mirror test/other' }])
  })

  it('that are required fail the upload over a conflict', async () => {
    const { send } = await open(mirror(true), {}, { onConflict: 'error' })
    await send({ 'a.txt': 'one' })
    expect(keysOf(await send({ 'a.txt': 'two' }))).toEqual([
      expect.stringMatching(
        /was not stored at test\/other, the required mirror of test\/main: "a.txt" already exists at/,
      ),
    ])
  })
})

describe('a mirror', () => {
  it('that hung blocked the healthy destination', async () => {
    const { main, other, send, background } = await open(mirror(false), { slots: createNamedSlots(1, 100) })
    other.hold()
    const first = send({ 'a.txt': 'one' })
    await expect.poll(() => other.puts).toEqual(['a.txt'])
    const second = send({ 'b.txt': 'two' })
    await expect.poll(() => main.puts).toEqual(['a.txt', 'b.txt'])
    other.letGo()
    expect([await first, await second].flatMap(keysOf)).toEqual(['a.txt', 'b.txt'])
    await background.idle()
    expect([...other.objects.keys()]).toEqual(['a.txt', 'b.txt'])
  })

  it('that is required failed, and took the payload from another one that still read it', async () => {
    const [main, broken, slow] = [makeBucket(), makeBucket(), makeBucket()]
    const mirrors = [
      { destination: 'test/broken', required: true },
      { destination: 'test/slow', required: false },
    ]
    const destinations = { main: { ...main, common: { mirrors } }, broken, slow }
    const { send, background } = await openProcess(destinations)
    broken.next.push('refused')
    slow.hold()
    const sending = send({ 'a.txt': 'x'.repeat(9_000_000) })
    await expect.poll(() => slow.puts).toHaveLength(1)
    expect(keysOf(await sending)).toEqual([expect.stringContaining('was not stored at test/broken')])
    slow.letGo()
    await background.idle()
    expect(slow.objects.get('a.txt')).toHaveLength(9_000_000)
  })

  it.each(['error', 'rename', 'replace'] as const)(
    'that is required failed once, and the upload became impossible (onConflict: %s)',
    async onConflict => {
      const { main, other, send, background } = await open({ ...mirror(true), onConflict })
      other.next.push('refused')
      expect((await send({ 'a.txt': 'one' })).outcomes).toMatchObject([{ ok: false }])
      await background.idle()
      expect(keysOf(await send({ 'a.txt': 'one' }))).toEqual(['a.txt'])
      expect([...main.objects.keys(), ...other.objects.keys()]).toEqual(['a.txt', 'a.txt'])
      const { outcomes } = await send({ 'a.txt': 'two' })
      expect(outcomes).toMatchObject([{ ok: onConflict !== 'error' }])
    },
  )

  it('that is required failed, and no history knew the file at the destination', async () => {
    const { other, send, database } = await open({ ...mirror(true), expiry: { default: 3_600_000 } })
    other.next.push('refused')
    expect((await send({ 'a.txt': 'one' })).outcomes).toMatchObject([{ ok: false }])
    expect(await database.read(db => findFiles(db, { limit: 9 }))).toMatchObject([
      { destination: 'test/main', key: 'a.txt', expiresAt: expect.any(Number) },
    ])
  })
})
