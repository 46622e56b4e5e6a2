import { createHash } from 'node:crypto'
import { type AddressInfo, createServer } from 'node:net'
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { azure } from '../../../../src/providers/azure/index.ts'
import type { Target, UploadObject } from '../../../../src/providers/contract.ts'
import { failureOf } from '../../../helpers/failure-of.ts'
import { fetchPublic, openHost } from '../../../helpers/http-exchange.ts'
import { hasProgram, needs } from '../../../helpers/needs.ts'
import { largeObject, objectOf } from '../../../helpers/provider-contract.ts'
import { type Answer, startRecorder } from '../../../helpers/recorder.ts'
import { AZURITE_NEEDS, type Azurite, startAzurite } from '../../../servers/azurite.ts'

const MIB = 1024 * 1024
const never = () => new AbortController().signal
const accountKey = Buffer.alloc(64, 'key').toString('base64')

async function open(options: Record<string, unknown>): Promise<Target> {
  const target = await openHost(azure, options)
  onTestFinished(() => target.close?.())
  return target
}

const put = (target: Target, key: string, text = 'bytes') =>
  target.put(objectOf(key, Buffer.from(text), 'image/png'), never())

describe('at azurite', () => {
  const missing = AZURITE_NEEDS.find(([program]) => !hasProgram(program))
  let azurite: Azurite
  let options: Record<string, unknown>

  beforeAll(async () => {
    if (missing) return
    azurite = await startAzurite()
    await azurite.createContainer('public', 'blob')
    await azurite.createContainer('private')
    const { account, accountKey, url: endpoint } = azurite
    options = { account, accountKey, endpoint, container: 'public' }
  })
  beforeEach(context => {
    if (missing) needs(context, missing[0], missing[1])
  })
  afterAll(() => azurite?.close())

  it('a blob has the properties that were asked for', async () => {
    const { url } = await put(await open({ ...options, accessTier: 'Cool' }), 'a b/ü.png')
    expect(url).toBe(`${azurite.url}/public/a%20b/%C3%BC.png`)
    const { headers } = await azurite.send('HEAD', '/public/a%20b/%C3%BC.png')
    expect(Object.fromEntries(headers)).toMatchObject({
      'content-type': 'image/png',
      'content-disposition': 'inline',
      'cache-control': 'public, max-age=86400',
      'x-ms-blob-type': 'BlockBlob',
      'x-ms-access-tier': 'Cool',
    })
  })

  it('a large blob has the same properties', async () => {
    const target = await open({ ...options, accessTier: 'Cold', contentDisposition: 'attachment' })
    const object = { ...largeObject('large.mp4', 70 * MIB + 1), contentType: 'video/mp4' }
    const stored = await target.put(object, never())
    expect(
      createHash('sha256')
        .update(await fetchPublic(stored))
        .digest('hex'),
    ).toBe(object.sha256)
    const { headers } = await azurite.send('HEAD', '/public/large.mp4')
    expect(Object.fromEntries(headers)).toMatchObject({
      'content-type': 'video/mp4',
      'content-disposition': 'attachment',
      'x-ms-access-tier': 'Cold',
    })
  })

  it('a signed URL opens a private container, for a while and for one blob', async () => {
    const target = await open({ ...options, container: 'private', linkType: 'sas', sasFor: '10m' })
    const [one, other] = [await put(target, "it's (1)/ü#.png", 'one'), await put(target, 'other', 'other')]
    expect((await fetchPublic(one)).toString()).toBe('one')
    const url = new URL(one.url)
    expect(Math.round((Date.parse(url.searchParams.get('se') ?? '') - Date.now()) / 60_000)).toBe(10)
    expect(url.searchParams.get('sp')).toBe('r')
    const changed = [
      one.url.replace(/\?.*/, ''),
      one.url.replace(/se=[^&]*/, 'se=2099-01-01T00%3A00%3A00Z'),
      other.url.replace(/\?.*/, url.search),
    ]
    for (const address of changed)
      await expect(fetchPublic({ url: address })).rejects.toThrow(/status 40[349]/)
    expect((await fetch(one.url, { method: 'DELETE' })).status).toBe(403)
    const { headers } = await fetch(one.url)
    expect(headers.get('cache-control')).toBe('private, max-age=86400')
  })

  it('a SAS token does instead of the key', async () => {
    const sasToken = azurite.createSas('public', 'racwd')
    const target = await open({ ...options, accountKey: undefined, sasToken })
    await target.check?.(never())
    const stored = await put(target, 'x/by sas.png')
    expect(stored.url).toBe(`${azurite.url}/public/x/by%20sas.png`)
    expect((await fetchPublic(stored)).toString()).toBe('bytes')
    await target.put(largeObject('x/large.mp4', 65 * MIB), never())
    await expect(target.exists?.('x/by sas.png', never())).resolves.toBe(true)
    await target.remove?.('x/by sas.png', never())
    await expect(target.exists?.('x/by sas.png', never())).resolves.toBe(false)
  })

  it.each([
    [
      'allows too little',
      () => azurite.createSas('public', 'r'),
      'AuthorizationPermissionMismatch. Give the "sasToken"',
    ],
    [
      'is for another container',
      () => azurite.createSas('private', 'racwd'),
      'is it valid for this container',
    ],
    [
      'has expired',
      () => azurite.createSas('public', 'racwd', new Date(0)),
      'is it valid for this container',
    ],
  ])('a SAS token that %s is refused with a reason', async (_, create, words) => {
    const sasToken = create()
    const target = await open({ ...options, accountKey: undefined, sasToken })
    for (const work of [() => put(target, 'refused.png'), () => target.check?.(never())]) {
      const error = await failureOf(Promise.resolve(work()))
      expect(error).toMatchObject({ code: 'destination_failed', retryable: false })
      expect(error.message).toContain(words)
      expect(error.message).not.toContain('sig')
    }
  })

  it.each([
    [{ container: 'absent' }, '404 (not found): ContainerNotFound. Create the container first.'],
    [{ account: 'devstoreaccount2' }, 'returned 40'],
    [{ accountKey }, '403 (the credentials lack permission): AuthorizationFailure. Check'],
  ])('with %j the reason is told', async (more, words) => {
    const target = await open({ ...options, ...more })
    for (const work of [() => put(target, 'refused.png'), () => target.check?.(never())]) {
      const error = await failureOf(Promise.resolve(work()))
      expect(error).toMatchObject({ code: 'destination_failed', retryable: false })
      expect(error.message).toContain(words)
    }
  })

  it('a check leaves nothing to be seen', async () => {
    await azurite.createContainer('checked')
    await (await open({ ...options, container: 'checked' })).check?.(never())
    const list = await (await azurite.send('GET', '/checked?restype=container&comp=list')).text()
    expect(list).toContain('<Blobs/>')
  })
})

describe('what only the real service answers', () => {
  const error = (code: string, message = '') =>
    `<?xml version="1.0"?><Error><Code>${code}</Code><Message>${message}\nRequestId:1\nTime:2</Message></Error>`
  const own = { 'x-ms-request-id': '1' }

  async function ask(answer: (method: string, url: string) => Answer, object: UploadObject) {
    const recorder = await startRecorder(({ method, url }) => answer(method, url))
    onTestFinished(recorder.close)
    const endpoint = `http://127.0.0.1:${recorder.port}`
    const target = await open({ account: 'pictures1', container: 'img', accountKey, endpoint })
    return failureOf(target.put(object, never()))
  }
  const small = objectOf('a.png', Buffer.from('bytes'))

  const cases: [string, Answer, boolean, string][] = [
    [
      'a clock that is wrong',
      {
        status: 403,
        headers: { ...own, date: new Date(Date.now() + 20.4 * 60_000).toUTCString() },
        body: error('AuthenticationFailed', 'Server failed to authenticate the request.'),
      },
      false,
      'AuthenticationFailed: the clock of this machine is 20 minutes slow.',
    ],
    [
      'an account without keys',
      { status: 403, headers: { ...own, 'x-ms-error-code': 'KeyBasedAuthenticationNotPermitted' } },
      false,
      'Use a user delegation SAS as "sasToken".',
    ],
    [
      'a lease',
      { status: 412, headers: own, body: error('LeaseIdMissing', 'There is currently a lease on the blob.') },
      false,
      'LeaseIdMissing. Release the lease of the existing blob',
    ],
    [
      'anything else',
      { status: 409, headers: own, body: error('BlobImmutableDueToPolicy', 'Not permitted by policy.') },
      false,
      'BlobImmutableDueToPolicy: Not permitted by policy.',
    ],
    [
      'too many requests',
      { status: 503, headers: { ...own, 'retry-after': '7' }, body: error('ServerBusy', 'Busy.') },
      true,
      'ServerBusy: Busy.',
    ],
    [
      'a web server that takes everything',
      { status: 201 },
      false,
      'but not a response of a blob service. Check "endpoint"',
    ],
    ['a page', { status: 404, body: '<h1>Nothing here</h1>' }, false, 'Nothing here'],
  ]
  it.each(cases)('%s', async (_, answer, retryable, words) => {
    const failure = await ask(() => answer, small)
    expect(failure).toMatchObject({ code: 'destination_failed', retryable })
    expect(failure.message).toContain(words)
    expect(failure.message).not.toMatch(/https?:/)
  })

  it.each(['HTTP/1.1 201 Created\r\nContent-Length: x\r\n\r\n', 'SSH-2.0-x\r\n', ''])(
    'something that is no HTTP, in which case the SAS token is not repeated: %j',
    async text => {
      const server = createServer(socket => socket.on('error', () => {}).once('data', () => socket.end(text)))
      onTestFinished(() => void server.close())
      await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
      const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
      const sasToken = 'sv=2021-12-02&sp=racwd&sig=this-is-secret%3D'
      const target = await open({ account: 'pictures1', container: 'img', sasToken, endpoint })
      const failure = await failureOf(target.put(small, never()))
      expect(failure.message).toMatch(/: 127\.0\.0\.1:\d+ can't be reached: /)
      expect(failure.message).not.toContain('secret')
    },
  )

  it.each([
    ['https://img.example.com', 'https'],
    ['http://img.example.com', 'https,http'],
  ])('a signed URL at %s opens the blob by %s only', async (urlPrefix, protocols) => {
    const target = await open({ account: 'pictures1', container: 'img', accountKey, urlPrefix })
    const { url } = (await target.sign?.('a.png', 'GET', 60, never())) ?? { url: '' }
    expect(new URL(url).searchParams.get('spr')).toBe(protocols)
  })

  it.each(['a./b.png', 'a/b.', `${'x'.repeat(1021)}.png`])(
    'names it would change are not sent: %.20s',
    async key => {
      const failure = await ask(() => expect.fail('sent'), objectOf(key, Buffer.from('bytes')))
      expect(failure.message).toMatch(/: its object key is invalid: /)
    },
  )
})
