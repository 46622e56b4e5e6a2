import sharp from 'sharp'
import { describe, expect, it } from 'vitest'
import { download, post, upload } from './helpers/form.ts'
import { startApp } from './helpers/start-app.ts'
import { type StubBucket, startStubBucket } from './helpers/stub-bucket.ts'

// Which object a file gets is decided and tested in test/store/objects.test.ts.

const keyTemplate = '{filename}{extname}'

/** A form with several files, of which some have the same name. */
function send(url: string, files: readonly (readonly [name: string, content: string | Buffer])[]) {
  const form = new FormData()
  for (const [name, content] of files) form.append('file', new Blob([Buffer.from(content)]), name)
  return post(url, { body: form })
}

async function startWith(bucket: StubBucket, options: object = {}) {
  const providers = { s3: { b: { ...bucket.options, ...options } } }
  const app = await startApp({ config: { keyTemplate, limits: { retries: 0 }, providers } })
  return `${app.url}/upload`
}

const contentsOf = async (links: readonly string[]) =>
  (await Promise.all(links.map(download))).map(bytes => bytes.toString())

describe('in one request', () => {
  it('two files of one name had one link, and one picture was lost', async () => {
    const app = await startApp({ config: { keyTemplate } })
    const names = ['one', 'two', 'three', 'four', 'five', 'six', 'seven']
    const { result } = await send(
      `${app.url}/upload`,
      names.map(content => ['a.txt', content]),
    )
    expect(new Set(result).size).toBe(names.length)
    expect(await contentsOf(result)).toEqual(names)
  })

  it('two pictures that become files of one name had one link', async () => {
    const app = await startApp({ config: { keyTemplate, images: { allowFromRequest: ['format'] } } })
    const paint = (background: string) => sharp({ create: { width: 9, height: 9, channels: 3, background } })
    const { items } = await send(`${app.url}/upload?format=webp`, [
      ['photo.png', await paint('red').png().toBuffer()],
      ['photo.jpg', await paint('blue').jpeg().toBuffer()],
    ])
    expect(items.map(({ fileName }) => fileName).sort()).toEqual(['photo-2.webp', 'photo.webp'])
  })

  it.each(['replace', 'rename', 'error'])(
    'the same file twice is stored once, and has one link (onConflict: %s)',
    async onConflict => {
      const bucket = await startStubBucket()
      const url = await startWith(bucket, { onConflict })
      for (const name of ['0.txt', '1.txt']) {
        const answer = await send(url, Array(9).fill([name, 'the same']))
        expect(answer).toMatchObject({ status: 200, result: Array(9).fill(answer.result[0]) })
      }
      expect(bucket.puts).toEqual(['0.txt', '1.txt'])
      bucket.refuse(1)
      const failed = await send(url, Array(2).fill(['2.txt', 'the same']))
      expect(failed.errors).toMatchObject([0, 1].map(index => ({ index, code: 'destination_failed' })))
      expect(bucket.puts, 'an equal pair is sent once, also when that fails').toHaveLength(3)
    },
  )
})

it('in requests that overlap, other bytes get another key, and the same bytes the same link and go out once', async () => {
  const bucket = await startStubBucket()
  const url = await startWith(bucket)
  bucket.hold()
  const first = upload(url, { 'a.txt': 'one' })
  await expect.poll(() => bucket.puts).toHaveLength(1)
  const others = ['one', 'two', 'one'].map(content => upload(url, { 'a.txt': content }))
  await expect.poll(() => bucket.puts).toEqual(['a.txt', 'a-2.txt'])
  bucket.letGo()
  const answers = await Promise.all([first, ...others])
  expect(await contentsOf(answers.flatMap(answer => answer.result))).toEqual(['one', 'one', 'two', 'one'])
  expect(bucket.puts).toHaveLength(2)
})

it.each(['{filename}-{sha256-8}{extname}', '{uuid}{extname}', '{str-8}{extname}'])(
  '%s asks the destination nothing',
  async template => {
    const bucket = await startStubBucket()
    await upload(await startWith(bucket, { keyTemplate: template }), { 'a.txt': 'one' })
    expect([bucket.puts.length, bucket.looks]).toEqual([1, []])
  },
)

it('the 40th file of a name asked the destination about all 39 before it', async () => {
  const bucket = await startStubBucket()
  const url = await startWith(bucket)
  const looks: number[] = []
  for (let n = 1; n <= 10; n++) {
    const before = bucket.looks.length
    await upload(url, { 'a.txt': String(n) })
    looks.push(bucket.looks.length - before)
  }
  expect(bucket.puts.at(-1)).toBe('a-10.txt')
  expect(looks.at(-1)).toBe(looks[1])
})
