import sharp from 'sharp'
import { describe, expect, it } from 'vitest'
import { download, post, upload } from './helpers/form.ts'
import { startApp } from './helpers/start-app.ts'
import { type StubBucket, startStubBucket } from './helpers/stub-bucket.ts'

const keyTemplate = '{filename}{extname}'

/** A form with several files, of which some have the same name. */
function send(url: string, files: readonly (readonly [name: string, content: string | Buffer])[]) {
  const form = new FormData()
  for (const [name, content] of files) form.append('file', new Blob([Buffer.from(content)]), name)
  return post(url, { body: form })
}

async function startWith(bucket: StubBucket, options: object = {}) {
  const config = {
    keyTemplate,
    limits: { retries: 0 },
    providers: { s3: { b: { ...bucket.options, ...options } } },
  }
  const app = await startApp({ config })
  return `${app.url}/upload`
}

const contentsOf = async (links: readonly string[]) =>
  (await Promise.all(links.map(download))).map(bytes => bytes.toString())

describe('in one request', () => {
  it('two files of one name had one link, and one picture was lost', async () => {
    const app = await startApp({ config: { keyTemplate } })
    const names = ['one', 'two', 'three', 'four', 'five', 'six', 'seven']
    const answer = await send(
      `${app.url}/upload`,
      names.map(content => ['a.txt', content]),
    )
    expect(answer).toMatchObject({ status: 200, success: true })
    expect(new Set(answer.result).size).toBe(names.length)
    expect(await contentsOf(answer.result)).toEqual(names)
  })

  it('two pictures that become files of one name had one link', async () => {
    const app = await startApp({ config: { keyTemplate, images: { allowFromRequest: ['format'] } } })
    const paint = (background: string) => sharp({ create: { width: 9, height: 9, channels: 3, background } })
    const [png, jpeg] = await Promise.all([paint('red').png().toBuffer(), paint('blue').jpeg().toBuffer()])
    const answer = await send(`${app.url}/upload?format=webp`, [
      ['photo.png', png],
      ['photo.jpg', jpeg],
    ])
    expect(answer).toMatchObject({ status: 200 })
    expect(answer.items.map(({ fileName }) => fileName).sort()).toEqual(['photo-2.webp', 'photo.webp'])
  })

  it.each(['replace', 'rename', 'error'])(
    'the same file twice is stored once, and has one link (onConflict: %s)',
    async onConflict => {
      const bucket = await startStubBucket()
      const url = await startWith(bucket, { onConflict })
      for (let round = 0; round < 5; round++) {
        const name = `${round}.txt`
        const answer = await send(url, Array(9).fill([name, 'the same']))
        expect(answer).toMatchObject({ status: 200, result: Array(9).fill(answer.result[0]) })
        expect(bucket.puts).toEqual(Array.from({ length: round + 1 }, (_, n) => `${n}.txt`))
      }
    },
  )

  it('an equal pair is sent once, also when that fails', async () => {
    const bucket = await startStubBucket()
    const url = await startWith(bucket)
    bucket.refuse(1)
    const answer = await send(url, [
      ['a.txt', 'the same'],
      ['a.txt', 'the same'],
    ])
    expect(answer.errors).toMatchObject([0, 1].map(index => ({ index, code: 'destination_failed' })))
    expect(bucket.puts).toEqual(['a.txt'])
  })
})

describe('in requests that overlap', () => {
  it('other bytes get another key, and the same bytes the same link and go out once', async () => {
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
    expect(new Set(answers.flatMap(answer => answer.result)).size).toBe(2)
    expect(bucket.puts).toHaveLength(2)
  })

  it('the key belongs to nobody any more once they are answered', async () => {
    const bucket = await startStubBucket()
    const url = await startWith(bucket, { onConflict: 'replace' })
    await send(url, Array(3).fill(['a.txt', 'one']))
    expect((await upload(url, { 'a.txt': 'two' })).items[0]?.fileName).toBe('a.txt')
  })

  it('a client that leaves while it waits for the same bytes of another one leaves nothing behind', async () => {
    const bucket = await startStubBucket()
    const url = await startWith(bucket, { onConflict: 'replace' })
    bucket.hold()
    const first = upload(url, { 'a.txt': 'one' })
    await expect.poll(() => bucket.puts).toHaveLength(1)
    const gone = post(url, { ...formInit('one'), signal: AbortSignal.timeout(100) })
    await expect(gone).rejects.toThrow()
    bucket.letGo()
    expect(await first).toMatchObject({ status: 200 })
    expect((await upload(url, { 'a.txt': 'two' })).items[0]?.fileName).toBe('a.txt')
  })
})

function formInit(content: string): RequestInit {
  const body = new FormData()
  body.append('file', new Blob([content]), 'a.txt')
  return { body }
}

it('a later file of the same name took the place of the earlier one, whose link then showed other bytes', async () => {
  const bucket = await startStubBucket()
  const url = await startWith(bucket)
  const links = []
  for (const content of ['one', 'two', 'one'])
    links.push((await upload(url, { 'a.txt': content })).result[0] as string)
  expect(await contentsOf(links)).toEqual(['one', 'two', 'one'])
  expect(bucket.puts).toEqual(['a.txt', 'a-2.txt'])
})

it.each(['{filename}-{sha256-8}{extname}', '{uuid}{extname}', '{str-8}{extname}'])(
  '%s asks the destination nothing',
  async template => {
    const bucket = await startStubBucket()
    const url = await startWith(bucket, { keyTemplate: template })
    await upload(url, { 'a.txt': 'one' })
    expect(bucket.puts).toHaveLength(1)
    expect(bucket.looks).toEqual([])
  },
)

it('the 40th file of a name asked the destination about all 39 before it', async () => {
  const bucket = await startStubBucket()
  const url = await startWith(bucket)
  const looksFor = async (content: string) => {
    const before = bucket.looks.length
    expect(await upload(url, { 'a.txt': content })).toMatchObject({ status: 200 })
    return bucket.looks.length - before
  }
  const looks: number[] = []
  for (let n = 1; n <= 40; n++) looks.push(await looksFor(String(n)))
  expect(bucket.puts.at(-1)).toBe('a-40.txt')
  expect(looks.at(-1)).toBe(looks[1])
})

it('under rename a later request with the same bytes stored them again beside the first ones', async () => {
  const bucket = await startStubBucket()
  const url = await startWith(bucket, { onConflict: 'rename' })
  const links = []
  for (const content of ['one', 'two', 'one', 'two', 'three'])
    links.push((await upload(url, { 'a.txt': content })).result[0])
  expect(links).toEqual([links[0], links[1], links[0], links[1], links[4]])
  expect(bucket.puts).toEqual(['a.txt', 'a-2.txt', 'a-3.txt'])
  await upload(url, { 'b.txt': 'one' })
  expect(bucket.puts.at(-1)).toBe('b.txt')
  expect(
    (await upload(url, { 'a.txt': 'one' })).result,
    'its link is known, though b.txt came later',
  ).toEqual([links[0]])
})
