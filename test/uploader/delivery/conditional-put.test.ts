import { describe, expect, it } from 'vitest'
import { expectOnlyIfAbsent } from '../../../src/provider-tests/expect.ts'
import type { ContractSetup } from '../../../src/provider-tests/setup.ts'
import { download, formOf, post, upload } from '../../helpers/form.ts'
import { openLoopbackS3 } from '../../helpers/s3-target.ts'
import { startApp, type TestApp } from '../../helpers/start-app.ts'
import { type StubBucket, startStubBucket } from '../../helpers/stub-bucket.ts'

const start = (bucket: StubBucket, onConflict: string, limits: object = { retries: 0 }): Promise<TestApp> =>
  startApp({
    config: {
      keyTemplate: '{filename}{extname}',
      limits,
      providers: { s3: { b: { ...bucket.options, onConflict } } },
    },
  })

const texts = ({ objects }: StubBucket) =>
  Object.fromEntries([...objects].map(([key, bytes]) => [key, bytes.toString()]))

describe('a service that rejects a PUT with If-None-Match', () => {
  it('keeps the contract of providers', async () => {
    const { options } = await startStubBucket(true)
    const target = openLoopbackS3(options)
    const setup = { target, fetch: ({ url }: { url: string }) => download(url) }
    await expectOnlyIfAbsent(setup as unknown as ContractSetup, 'a b/c.bin')
    await target.close?.()
  })

  it('is not asked first whether the object exists', async () => {
    const bucket = await startStubBucket(true)
    const app = await start(bucket, 'rename')
    for (const text of ['one', 'two', 'three'])
      expect(await upload(`${app.url}/upload`, { 'a.txt': text })).toMatchObject({ status: 200 })
    expect(texts(bucket)).toEqual({ 'a.txt': 'one', 'a-2.txt': 'two', 'a-3.txt': 'three' })
    // What is in use is found by asking, because each object is sent for nothing once at most.
    expect(bucket.looks).toEqual(['a-2.txt', 'a-2.txt', 'a-3.txt'])
    expect(bucket.puts).toEqual(['a.txt', 'a.txt', 'a-2.txt', 'a.txt', 'a-3.txt'])
  })

  it('keeps what it has with onConflict: error', async () => {
    const bucket = await startStubBucket(true)
    const app = await start(bucket, 'error')
    await upload(`${app.url}/upload`, { 'a.txt': 'one' })
    for (const text of ['one', 'two']) {
      const answer = await upload(`${app.url}/upload`, { 'a.txt': text })
      expect(answer).toMatchObject({ status: 502, code: 'delivery_failed' })
      expect(answer.message).toContain('"a.txt" already exists at s3/b')
    }
    expect(texts(bucket)).toEqual({ 'a.txt': 'one' })
  })

  it('gets no second object when a put had arrived and its response was an error', async () => {
    const bucket = await startStubBucket(true)
    const app = await start(bucket, 'rename', { retries: 2 })
    bucket.forget(1)
    const answer = await upload(`${app.url}/upload`, { 'a.txt': 'one' })
    expect(answer).toMatchObject({ status: 200, items: [{ fileName: 'a.txt' }] })
    expect(texts(bucket)).toEqual({ 'a.txt': 'one' })
    expect(bucket.puts).toEqual(['a.txt', 'a.txt'])
  })

  it('does not overwrite what came between a failed attempt and its repetition', async () => {
    const bucket = await startStubBucket(true)
    const app = await start(bucket, 'rename')
    const send = () =>
      post(`${app.url}/upload`, { body: formOf({ 'a.txt': 'one' }), headers: { 'Idempotency-Key': 'k1' } })
    bucket.refuse(1, 503)
    expect(await send()).toMatchObject({ status: 502 })
    await upload(`${app.url}/upload`, { 'a.txt': 'somebody else' })
    expect(await send()).toMatchObject({ status: 200, items: [{ fileName: 'a-2.txt' }] })
    expect(texts(bucket)).toEqual({ 'a.txt': 'somebody else', 'a-2.txt': 'one' })
  })

  it('is asked first about larger objects', async () => {
    const bucket = await startStubBucket(true)
    const app = await start(bucket, 'rename')
    for (const size of [2 ** 20, 2 ** 20 + 1])
      expect(await upload(`${app.url}/upload`, { [`${size}.bin`]: Buffer.alloc(size) })).toMatchObject({
        status: 200,
      })
    expect(bucket.looks).toEqual([`${2 ** 20 + 1}.bin`])
  })
})
