import { randomBytes } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { type Fault, type FaultProxy, startFaultProxy } from '../../../src/provider-tests/fault-proxy.ts'
import { s3 } from '../../../src/providers/s3/index.ts'
import { dialLoopback } from '../../helpers/dial-loopback.ts'
import { makeDirectory } from '../../helpers/directory.ts'
import { failureOf } from '../../helpers/failure-of.ts'
import { hasAll, needsAll } from '../../helpers/needs.ts'
import { measureGrowth } from '../../helpers/peak-memory.ts'
import { contractAt, describeProvider, objectOf, stallingObject } from '../../helpers/provider-contract.ts'
import { openLoopbackS3 } from '../../helpers/s3-target.ts'
import { share } from '../../helpers/share.ts'
import { never, type Options, openTarget } from '../../helpers/target.ts'
import { RADOSGW_NEEDS, type Radosgw, startRadosgw } from '../../servers/radosgw.ts'

const MIB = 1024 * 1024

const shareRadosgw = share(startRadosgw, rgw => rgw.close())

describeProvider(
  's3 at Ceph',
  async () => {
    const rgw = await shareRadosgw()
    await rgw.createBucket('contract')
    const { port, owner } = rgw
    const options = { bucket: 'contract', urlPrefix: `${rgw.url}/contract`, ...owner }
    const openAt = (port: number, others: Options = {}) =>
      openTarget(s3, { ...options, endpoint: `http://127.0.0.1:${port}`, ...others })
    const bad = { secretAccessKey: 'a wrong secret' }
    const secrets = [owner.secretAccessKey, bad.secretAccessKey]
    return contractAt({ port, close: async () => {} }, openAt, { bad, secrets })
  },
  RADOSGW_NEEDS,
)

describe('s3 at Ceph', () => {
  let rgw: Radosgw
  let options: Options
  beforeEach(context => needsAll(context, RADOSGW_NEEDS))
  beforeAll(async () => {
    if (!hasAll(RADOSGW_NEEDS)) return
    rgw = await shareRadosgw()
    await rgw.createBucket('pictures')
    await rgw.createBucket('private', { isPrivate: true })
    options = { endpoint: rgw.url, bucket: 'pictures', urlPrefix: `${rgw.url}/pictures`, ...rgw.owner }
  })

  const open = (more: Options = {}) => openLoopbackS3({ ...options, ...more })

  /** A proxy in front of the gateway, and options that lead there. */
  async function breakWith(
    decide: (request: { line: string; index: number }) => Fault | undefined,
  ): Promise<FaultProxy & { through: Record<string, unknown> }> {
    const proxy = await startFaultProxy(rgw.port, decide)
    onTestFinished(() => proxy.close())
    return { ...proxy, through: { endpoint: `http://127.0.0.1:${proxy.port}` } }
  }

  it('keeps type, Cache-Control and Content-Disposition, of objects in parts, too', async () => {
    const target = open({ multipartThreshold: '5MB', contentDisposition: 'attachment' })
    for (const size of [10, 11 * MIB]) {
      await target.put(objectOf('head.png', Buffer.alloc(size), 'image/png'), never())
      expect(await rgw.admin.head('pictures', 'head.png')).toMatchObject({
        'content-type': 'image/png',
        'content-length': String(size),
        'cache-control': 'public, max-age=86400',
        'content-disposition': 'attachment',
      })
    }
  })

  it('names the bucket in the host, with and without TLS', async () => {
    const { caFile, port, tlsPort } = rgw
    const connect = dialLoopback({ ca: await readFile(caFile, 'utf8') })
    for (const endpoint of [`http://s3.localhost:${port}`, `https://s3.localhost:${tlsPort}`]) {
      const virtual = { ...options, endpoint, addressingStyle: 'virtual' }
      const target = openLoopbackS3(virtual, connect)
      const bytes = randomBytes(3 * MIB)
      await target.put(objectOf('virtual.bin', bytes), never())
      expect((await rgw.admin.read('pictures', 'virtual.bin')).equals(bytes)).toBe(true)
    }
  })

  it('says when the certificate is for another name', async () => {
    const connect = dialLoopback({ ca: await readFile(rgw.caFile, 'utf8') })
    const other = {
      ...options,
      endpoint: `https://s3.example.com:${rgw.tlsPort}`,
      addressingStyle: 'virtual',
    }
    const named = openLoopbackS3(other, connect)
    const error = await failureOf(named.put(objectOf('a', Buffer.of(1)), never()))
    expect(error.message).toMatch(
      /pictures\.s3\.example\.com:\d+ can't be reached: its certificate is for another hostname \(\w+\)\. Check "endpoint", or set "addressingStyle" to "path"/,
    )
  })

  it('opens a private bucket with a signed URL, and only with that', async () => {
    const target = open({
      bucket: 'private',
      linkType: 'presigned',
      urlPrefix: undefined,
      presignedFor: '1h',
    })
    for (const key of ["it's (1) *.png", 'ü/日本.png']) {
      const { url } = await target.put(objectOf(key, Buffer.from('private'), 'image/png'), never())
      expect(new URL(url).href).toBe(url)
      expect(url).not.toMatch(/[\s"'<>()*]/)
      expect(new URL(url).searchParams.get('X-Amz-Expires')).toBe('3600')
      expect(await (await fetch(url)).text()).toBe('private')
      const { origin, pathname } = new URL(url)
      expect((await fetch(origin + pathname)).status).toBe(403)
      expect((await fetch(url.replace('Expires=3600', 'Expires=7200'))).status).toBe(403)
    }
  })

  it('leaves nothing behind when it is checked', async () => {
    const target = open({ path: 'probe/here' })
    await target.check?.(never())
    expect(await rgw.admin.listUploads('pictures')).toEqual([])
    expect((await rgw.admin.list('pictures')).filter(key => key.startsWith('probe/'))).toEqual([])
  })

  it('says that it may not abort, and not that there are no uploads in parts', async () => {
    const answer = { status: 403, body: '<Error><Code>AccessDenied</Code><Message>x</Message></Error>' }
    const proxy = await breakWith(({ line }) => (line.startsWith('DELETE') ? answer : undefined))
    await rgw.createBucket('stuck')
    const error = await failureOf(open({ ...proxy.through, bucket: 'stuck' }).check?.(never()))
    expect(error.message).toContain('Allow s3:AbortMultipartUpload on the bucket')
  })

  it('aborts its test upload again when the first time failed', async () => {
    let failures = 0
    const proxy = await breakWith(({ line }) =>
      line.startsWith('DELETE') && failures++ === 0 ? { status: 503 } : undefined,
    )
    await open(proxy.through).check?.(never())
    expect(await rgw.admin.listUploads('pictures')).toEqual([])
  })

  it('checks what a put needs, and no more', async () => {
    const Statement = [
      { Effect: 'Allow', Principal: '*', Action: 's3:PutObject', Resource: 'arn:aws:s3:::writable/*' },
      {
        Effect: 'Allow',
        Principal: '*',
        Action: 's3:AbortMultipartUpload',
        Resource: 'arn:aws:s3:::writable/*',
      },
    ]
    await rgw.admin.send('PUT', '/writable')
    await rgw.admin.send('PUT', '/writable?policy=', JSON.stringify({ Version: '2012-10-17', Statement }))
    const target = open({ bucket: 'writable', ...rgw.stranger })
    await target.check?.(never())
    await target.put(objectOf('a.png', Buffer.of(1)), never())
    await open({ bucket: 'writable' }).put(objectOf('b.png', Buffer.of(1)), never())
    const error = await failureOf(target.exists?.('b.png', never()))
    expect(error.message).toContain('s3:GetObject and s3:ListBucket')
    expect((await failureOf(target.remove?.('b.png', never()))).message).toContain('s3:DeleteObject')
  })

  it.each<[string, Record<string, unknown>, RegExp]>([
    [
      'a wrong secret',
      { secretAccessKey: 'wrong' },
      /\(the signature does not match\).* Check "secretAccessKey"/,
    ],
    ['an unknown key', { accessKeyId: 'nobody' }, /\(unknown access key ID\).* Check "accessKeyId"/],
    [
      'a bucket that is not there',
      { bucket: 'nope' },
      /\(the bucket "nope" does not exist\).* Check "bucket"/,
    ],
    ['an unknown storage class', { storageClass: 'NOPE' }, /it may not support "storageClass"/],
  ])('says that %s is the reason, and does not try again', async (_, more, words) => {
    const target = open({ ...more, multipartThreshold: '5MB' })
    const puts = [10, 4 * MIB, 6 * MIB].map(size => objectOf('a.bin', Buffer.alloc(size)))
    const tries = [...puts.map(object => () => target.put(object, never())), () => target.check?.(never())]
    for (const work of tries) {
      const error = await failureOf(work())
      expect(error.message).toMatch(words)
      expect(error.retryable).toBe(false)
    }
  })

  it('says that the quota is used up', async () => {
    await rgw.setQuota(8 * MIB)
    onTestFinished(() => rgw.setQuota(-1))
    const error = await failureOf(open().put(objectOf('a.bin', Buffer.alloc(9 * MIB)), never()))
    expect(error.message).toContain('no space left, or the quota is exceeded')
  })

  it('takes keys from the environment when it is given none', async () => {
    const names = ['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY', 'AWS_EC2_METADATA_DISABLED', 'HOME'] as const
    const before = names.map(name => [name, process.env[name]] as const)
    onTestFinished(() => {
      for (const [name, value] of before) {
        if (value === undefined) delete process.env[name]
        else process.env[name] = value
      }
    })
    const home = await makeDirectory()
    // Without these two the search would go on to look in files and on the network.
    Object.assign(process.env, { AWS_EC2_METADATA_DISABLED: 'true', HOME: home })
    const without = { accessKeyId: undefined, secretAccessKey: undefined }
    const error = await failureOf(open(without).put(objectOf('env.txt', Buffer.of(1)), never()))
    expect(error.message).toContain(
      'no credentials found. Set "accessKeyId" and "secretAccessKey", or the variables',
    )
    expect(error.retryable).toBe(false)
    process.env['AWS_ACCESS_KEY_ID'] = rgw.owner.accessKeyId
    process.env['AWS_SECRET_ACCESS_KEY'] = rgw.owner.secretAccessKey
    await open(without).put(objectOf('env.txt', Buffer.from('env')), never())
    expect((await rgw.admin.read('pictures', 'env.txt')).toString()).toBe('env')
  })

  describe('in parts', () => {
    const inParts = { multipartThreshold: '5MB', partSize: '5MB' }

    it('stores exactly the bytes, from memory and from a file', async () => {
      const target = open(inParts)
      const directory = await makeDirectory()
      for (const size of [5 * MIB + 1, 10 * MIB, 23 * MIB + 7]) {
        const bytes = randomBytes(size)
        const path = join(directory, String(size))
        await writeFile(path, bytes)
        for (const object of [objectOf('m.bin', bytes), objectOf('f.bin', path)]) {
          await target.put(object, never())
          expect((await rgw.admin.read('pictures', object.key)).equals(bytes)).toBe(true)
        }
      }
      expect(await rgw.admin.listUploads('pictures')).toEqual([])
    })

    it('needs memory for a part of a file alone, however large it is', {
      timeout: 60_000,
    }, async () => {
      const { url: endpoint } = rgw
      const options = { endpoint, bucket: 'pictures', urlPrefix: `${endpoint}/pictures`, ...rgw.owner }
      expect(await measureGrowth('s3', options, 128)).toBeLessThan(64)
    })

    it('sends a part again that failed transiently, and none of the others', async () => {
      let faults: (Fault | undefined)[] = [{ status: 503 }, 'reset', { status: 500 }]
      const proxy = await breakWith(({ line }) =>
        line.includes('partNumber=2') ? faults.shift() : undefined,
      )
      const bytes = randomBytes(16 * MIB)
      await open({ ...inParts, ...proxy.through }).put(objectOf('again.bin', bytes), never())
      const parts = proxy.seen.map(line => /partNumber=(\d)/.exec(line)?.[1]).filter(Boolean)
      expect(parts.sort().join('')).toBe('1222234')
      expect((await rgw.admin.read('pictures', 'again.bin')).equals(bytes)).toBe(true)
      faults = []
    })

    it('stops at a part that is refused, and takes back the others', async () => {
      const proxy = await breakWith(({ line }) =>
        line.includes('partNumber=2') ? { status: 403 } : undefined,
      )
      const object = objectOf('stop.bin', randomBytes(60 * MIB))
      const error = await failureOf(open({ ...inParts, ...proxy.through }).put(object, never()))
      expect(error.retryable).toBe(false)
      expect(proxy.seen.filter(line => line.includes('partNumber=')).length).toBeLessThan(6)
      expect(proxy.seen.at(-1)).toMatch(/^DELETE .*uploadId=/)
      expect(await rgw.admin.listUploads('pictures')).toEqual([])
      expect(await rgw.admin.list('pictures')).not.toContain('stop.bin')
    })

    it('takes back what has arrived when it is aborted, also while the body stalls', async () => {
      const target = open(inParts)
      const abort = new AbortController()
      const object = stallingObject('stalled.bin', () => abort.abort(new Error('enough')))
      await expect(target.put(object, abort.signal)).rejects.toThrow('enough')
      await target.close?.()
      expect(await rgw.admin.listUploads('pictures')).toEqual([])
      expect(await rgw.admin.list('pictures')).not.toContain('stalled.bin')
    })
  })
})
