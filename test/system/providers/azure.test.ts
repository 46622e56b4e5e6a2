import { createHash } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { azure } from '../../../src/providers/azure/index.ts'
import { failureOf } from '../../helpers/failure-of.ts'
import { hasAll, needsAll } from '../../helpers/needs.ts'
import { contractAt, describeProvider, largeObject } from '../../helpers/provider-contract.ts'
import { fetchPublic, never, type Options, openTarget, open as openWith, put } from '../../helpers/target.ts'
import { AZURITE_NEEDS, type Azurite, startAzurite } from '../../servers/azurite.ts'

const MIB = 1024 * 1024
const OTHER_KEY = Buffer.alloc(64, 'another key').toString('base64')

describeProvider(
  'azure at azurite',
  async () => {
    const azurite = await startAzurite()
    const { account, accountKey } = azurite
    await azurite.createContainer('pictures')
    // A private container whose blobs are read by signed URLs.
    const options = { account, container: 'pictures', accountKey, linkType: 'sas' }
    const openAt = (port: number, others: Options = {}) =>
      openTarget(azure, { ...options, endpoint: `http://127.0.0.1:${port}/${account}`, ...others })
    return contractAt(azurite, openAt, { bad: { accountKey: OTHER_KEY }, secrets: [accountKey, OTHER_KEY] })
  },
  AZURITE_NEEDS,
)

describe('at azurite', () => {
  let azurite: Azurite
  let options: Options

  beforeAll(async () => {
    if (!hasAll(AZURITE_NEEDS)) return
    azurite = await startAzurite()
    await azurite.createContainer('public', 'blob')
    await azurite.createContainer('private')
    const { account, accountKey, url: endpoint } = azurite
    options = { account, accountKey, endpoint, container: 'public' }
  })
  beforeEach(context => needsAll(context, AZURITE_NEEDS))
  afterAll(() => azurite?.close())

  const open = (more: Options = {}) => openWith(azure, { ...options, ...more })

  it('a blob has the properties that were asked for', async () => {
    const { url } = await put(await open({ accessTier: 'Cool' }), 'a b/ü.png')
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
    const target = await open({ accessTier: 'Cold', contentDisposition: 'attachment' })
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
    const target = await open({ container: 'private', linkType: 'sas', sasFor: '10m' })
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
    const target = await open({ accountKey: undefined, sasToken })
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
    const target = await open({ accountKey: undefined, sasToken })
    for (const work of [() => put(target, 'refused.png'), () => target.check?.(never())]) {
      const error = await failureOf(work())
      expect(error).toMatchObject({ code: 'destination_failed', retryable: false })
      expect(error.message).toContain(words)
      expect(error.message).not.toContain('sig')
    }
  })

  it.each([
    [{ container: 'absent' }, '404 (not found): ContainerNotFound. Create the container first.'],
    [{ account: 'devstoreaccount2' }, 'returned 40'],
    [{ accountKey: OTHER_KEY }, '403 (the credentials lack permission): AuthorizationFailure. Check'],
  ])('with %j the reason is told', async (more, words) => {
    const target = await open(more)
    for (const work of [() => put(target, 'refused.png'), () => target.check?.(never())]) {
      const error = await failureOf(work())
      expect(error).toMatchObject({ code: 'destination_failed', retryable: false })
      expect(error.message).toContain(words)
    }
  })

  it('a check leaves nothing to be seen', async () => {
    await azurite.createContainer('checked')
    await (await open({ container: 'checked' })).check?.(never())
    const list = await (await azurite.send('GET', '/checked?restype=container&comp=list')).text()
    expect(list).toContain('<Blobs/>')
  })
})
