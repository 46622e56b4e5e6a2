import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { runCli } from '../cli/run-cli.ts'
import { makeDirectory } from '../helpers/directory.ts'
import { eventually } from '../helpers/eventually.ts'
import { download, list, post, upload } from '../helpers/form.ts'
import { startGate } from '../helpers/gate.ts'
import { startApp, type TestApp } from '../helpers/start-app.ts'
import { startStubBucket } from '../helpers/stub-bucket.ts'

/** Three folders; `broken` can't be written, since a file stands where it should be. */
async function start(options: Record<string, Record<string, unknown>>): Promise<TestApp> {
  const directory = await makeDirectory()
  await writeFile(join(directory, 'blocked'), '')
  const local = Object.fromEntries(
    ['main', 'other', 'broken'].map(name => [
      name,
      { directory: name === 'broken' ? 'blocked/x' : name, serve: true, ...options[name] },
    ]),
  )
  return startApp({
    directory,
    config: { default: 'local/main', providers: { local }, limits: { retries: 0 } },
  })
}

const storedIn = async (app: TestApp) =>
  (await app.files()).map(path => path.split('/')[0]).filter(name => name !== 'blocked')

describe('a fallback', () => {
  it('is not used while the destination works', async () => {
    const app = await start({ main: { fallback: 'local/other' } })
    expect(await upload(`${app.url}/upload`, { 'a.png': 'one' })).toMatchObject({ status: 200 })
    expect(await storedIn(app)).toEqual(['main'])
  })

  // A large one is written to a disk before it is stored: that was the disk of the broken destination.
  it.each([
    ['a small', 'one'],
    ['a large', 'one'.repeat(3_000_000)],
  ])('takes %s file when the destination fails, and the answer names it', async (_, content) => {
    const app = await start({ broken: { fallback: 'local/other' } })
    const answer = await upload(`${app.url}/upload?configName=broken`, { 'a.png': content })
    expect(answer).toMatchObject({ status: 200, success: true, items: [{ destination: 'local/other' }] })
    expect(answer.result[0]).toContain('/files/other/')
    expect((await download(answer.result[0]!)).equals(Buffer.from(content))).toBe(true)
    expect(app.rawLog()).toContain('its fallback local/other is used')
  })

  it('that fails, too, is named beside the destination', async () => {
    const app = await start({ broken: { fallback: 'local/main' }, main: { directory: 'blocked/y' } })
    const answer = await upload(`${app.url}/upload?configName=broken`, { 'a.png': 'one' })
    expect(answer.success).toBe(false)
    expect(answer.message).toMatch(/local\/broken.*Its fallback local\/main also failed/)
  })
})

describe('a refusal over a conflict', () => {
  it('was taken for a failure, and the fallback got the file with success', async () => {
    const main = { fallback: 'local/other', onConflict: 'error', keyTemplate: '{filename}{extname}' }
    const app = await start({ main })
    await upload(`${app.url}/upload`, { 'a.png': 'one' })
    const answer = await upload(`${app.url}/upload`, { 'a.png': 'two' })
    expect(answer).toMatchObject({ status: 502, success: false, code: 'destination_failed' })
    expect(answer.message).toContain('"a.png" already exists at local/main')
    expect(await storedIn(app)).toEqual(['main'])
  })

  it('by a mirror is told, and a required mirror fails the upload', async () => {
    const other = { onConflict: 'error', keyTemplate: '{filename}{extname}' }
    const app = await start({ main: { mirrors: [{ destination: 'local/other', required: true }] }, other })
    await upload(`${app.url}/upload`, { 'a.png': 'one' })
    const answer = await upload(`${app.url}/upload`, { 'a.png': 'two' })
    expect(answer.message).toMatch(
      /was not stored at local\/other, the required mirror of local\/main: "a.png" already exists at/,
    )
  })
})

it('a required mirror that failed took the payload from another one that still read it', async () => {
  const bucket = await startStubBucket()
  const directory = await makeDirectory()
  await writeFile(join(directory, 'blocked'), '')
  const mirrors = [{ destination: 'local/broken', required: true }, 's3/slow']
  const app = await startApp({
    directory,
    config: {
      default: 'local/main',
      limits: { retries: 2 },
      providers: {
        local: {
          main: { directory: 'main', serve: true, mirrors },
          broken: { directory: 'blocked/x', serve: true },
        },
        s3: { slow: bucket.options },
      },
    },
  })
  const large = Buffer.alloc(3_000_000, 'x')
  bucket.hold()
  bucket.refuse(1, 503)
  const sent = upload(`${app.url}/upload`, { 'a.bin': large })
  await eventually(() => expect(bucket.puts).toHaveLength(2))
  bucket.letGo()
  expect((await sent).message).toContain('was not stored at local/broken, the required mirror of local/main')
  await expect.poll(() => [...bucket.objects.values()].map(bytes => bytes.equals(large))).toEqual([true])
})

describe('mirrors', () => {
  it('get a copy, and the answer and the history know it', async () => {
    const app = await start({ main: { mirrors: ['local/other'] } })
    const answer = await upload(`${app.url}/upload`, { 'a.png': 'one' })
    expect(answer.status).toBe(200)
    const [item] = answer.items as unknown as { mirrors: { destination: string; imgUrl: string }[] }[]
    expect(item?.mirrors).toMatchObject([{ destination: 'local/other' }])
    expect((await download(item!.mirrors[0]!.imgUrl)).toString()).toBe('one')
    expect(await storedIn(app)).toEqual(['main', 'other'])
  })

  it('that fail are in the answer and the log, and do not fail the upload', async () => {
    const app = await start({ main: { mirrors: ['local/broken', 'local/other'] } })
    const answer = await upload(`${app.url}/upload`, { 'a.png': 'one' })
    expect(answer).toMatchObject({ status: 200, success: true })
    const [item] = answer.items as unknown as { mirrors: { destination: string; error?: string }[] }[]
    expect(item?.mirrors[0]).toMatchObject({ destination: 'local/broken', error: expect.any(String) })
    expect(item?.mirrors[1]).not.toHaveProperty('error')
    expect(app.rawLog()).toContain('Could not store a copy at the mirror local/broken')
  })
})

describe('a mirror', () => {
  /** Two buckets, of which `main` has `copy` as its mirror. */
  async function startWithCopy(required: boolean, more: object = {}, limits: object = {}) {
    const [main, copy] = [await startStubBucket(), await startStubBucket()]
    const mirrors = [{ destination: 's3/copy', required }]
    const s3 = { main: { ...main.options, mirrors, ...more }, copy: copy.options }
    const config = {
      default: 's3/main',
      keyTemplate: '{filename}{extname}',
      limits: { retries: 0, ...limits },
      sources: { url: { allowPrivate: true } },
      providers: { s3 },
    }
    return { main, copy, app: await startApp({ config }) }
  }

  it.each(['a form', 'a URL'])('that hung blocked the healthy destination (%s)', async kind => {
    const { main, copy, app } = await startWithCopy(false, {}, { perDestination: { concurrent: 1 } })
    const gate = await startGate()
    gate.open()
    const ask = (name: string) =>
      kind === 'a URL'
        ? post(`${app.url}/upload`, list(gate.url.replace('file', name)))
        : upload(`${app.url}/upload`, { [`${name}.txt`]: name })
    copy.hold()
    const first = ask('a')
    await expect.poll(() => copy.puts).toEqual(['a.txt'])
    const second = ask('b')
    await expect.poll(() => main.puts).toEqual(['a.txt', 'b.txt'])
    copy.letGo()
    expect([(await first).status, (await second).status]).toEqual([200, 200])
    await expect.poll(() => [...copy.objects.keys()]).toEqual(['a.txt', 'b.txt'])
  })

  it.each(['error', 'rename', 'replace'])(
    'that is required failed once, and the upload became impossible (onConflict: %s)',
    async onConflict => {
      const { main, copy, app } = await startWithCopy(true, { onConflict })
      copy.refuse(1)
      const send = () => upload(`${app.url}/upload`, { 'a.txt': 'one' })
      expect(await send()).toMatchObject({ status: 502, code: 'destination_failed' })
      expect(await send()).toMatchObject({ status: 200, items: [{ fileName: 'a.txt' }] })
      expect([...main.objects.keys(), ...copy.objects.keys()]).toEqual(['a.txt', 'a.txt'])
      const other = await upload(`${app.url}/upload`, { 'a.txt': 'two' })
      expect(other.status).toBe(onConflict === 'error' ? 502 : 200)
    },
  )

  it('that is required failed, and no history knew the file at the destination', async () => {
    const { copy, app } = await startWithCopy(true, { expiry: { default: '30d' } })
    copy.refuse(1)
    expect(await upload(`${app.url}/upload`, { 'a.txt': 'one' })).toMatchObject({ status: 502 })
    const env = { XDG_DATA_HOME: join(app.directory, 'data') }
    const { stdout } = await runCli(['history', '--json'], { cwd: app.directory, env })
    expect(JSON.parse(stdout)).toMatchObject([
      { destination: 's3/main', key: 'a.txt', expiresAt: expect.any(String) },
    ])
  })
})

it.each([
  [
    'no such destination',
    { fallback: 'local/typo' },
    'providers.local.main.fallback: "local/typo" is not a destination',
  ],
  [
    'the destination itself',
    { mirrors: ['local/main'] },
    'providers.local.main.mirrors[0]: must be another destination, not this one',
  ],
  [
    'a provider alone',
    { fallback: 'local' },
    'providers.local.main.fallback: must be a destination, written',
  ],
  [
    'a broken expression',
    { urlRewrite: [{ from: '(', to: '' }] },
    'providers.local.main.urlRewrite[0].from: is not a valid regular expression',
  ],
])('a configuration with %s is refused', async (_what, options, message) => {
  await expect(start({ main: options })).rejects.toThrow(message)
})

it('URL rewriting changes the links of its destination only', async () => {
  const app = await start({
    main: { urlRewrite: [{ from: '^https?://[^/]+/files', to: 'https://cdn.example' }] },
  })
  const main = await upload(`${app.url}/upload`, { 'a.png': 'one' })
  const other = await upload(`${app.url}/upload?configName=other`, { 'a.png': 'one' })
  expect(main.result[0]).toMatch(/^https:\/\/cdn\.example\/main\//)
  expect(other.result[0]).toMatch(/^http:\/\/127\.0\.0\.1/)
})
