import { describe, expect, it } from 'vitest'
import { azure } from '../../src/providers/azure/index.ts'
import { failureOf } from '../helpers/failure-of.ts'
import { type Answer, play } from '../helpers/player.ts'
import { never, type Options, open, problemOf as problemIn, put } from '../helpers/target.ts'
import { serveRaw } from '../uploader/sources/servers.ts'

const accountKey = Buffer.alloc(64, 'key').toString('base64')
const options = { account: 'pictures1', container: 'img', accountKey }
const sas = { accountKey: undefined, sasToken: 'sv=2021-12-02&sp=racwd&sig=abc%3D' }

const problemOf = (more: Options) => problemIn(azure, { ...options, ...more })

describe('the options', () => {
  it.each([
    {},
    sas,
    { ...sas, sasToken: 'sig=abc&sv=1' },
    { container: '$web', urlPrefix: 'https://pictures1.z6.web.core.windows.net' },
    { container: '$web', linkType: 'sas' },
    { endpoint: 'http://127.0.0.1:10000/devstoreaccount1', linkType: 'sas', sasFor: '1m' },
    { accessTier: 'Cold', cacheControl: 'public, max-age=1', contentDisposition: 'attachment' },
  ])('fit: %j', more => {
    expect(problemOf(more)).toBeUndefined()
  })

  it.each([
    [{ accountKey: undefined }, 'either "accountKey" or'],
    [{ sasToken: sas.sasToken }, 'either "accountKey" or'],
    [{ accountKey: 'DefaultEndpointsProtocol=https;AccountName=x;AccountKey=y==' }, 'connection string'],
    [{ accountKey: 'short' }, 'must be the Base64 access key'],
    [{ ...sas, sasToken: `?${sas.sasToken}` }, 'after the question mark'],
    [{ ...sas, sasToken: 'https://a.blob.core.windows.net/c?sv=1' }, 'after the question mark'],
    [{ ...sas, linkType: 'sas' }, 'need the "accountKey"'],
    [{ container: '$web' }, '"urlPrefix" is required'],
    [{ container: '$root' }, 'must be the name of a container'],
    [{ container: 'Img' }, 'must be the name of a container'],
    [{ container: 'a--b' }, 'must be the name of a container'],
    [{ container: 'ab' }, 'must be the name of a container'],
    [{ container: 'a/b' }, 'must be the name of a container'],
    [{ account: 'my-account' }, 'must be the name of a storage account'],
    [{ endpoint: 'a.blob.core.windows.net' }, 'must be an http or https URL'],
    [{ endpoint: 'https://a.blob.core.windows.net/?sv=1' }, 'must not have a query'],
    [{ accessTier: 'Archive' }, 'Invalid option'],
    [{ cacheControl: 'a\r\nb: c' }, 'printable ASCII'],
    [{ contentDisposition: ' inline' }, 'printable ASCII'],
    [{ sasFor: '1s' }, 'must be a time'],
  ])('do not fit: %j', (more, problem) => {
    expect(problemOf(more)).toContain(problem)
  })
})

describe('what only the real service answers', () => {
  /** The service refuses a request. */
  const refusal = (status: number, code: string, message = '', headers = {}): Answer => ({
    status,
    headers: Object.assign(headers, { 'x-ms-request-id': '1' }),
    body: `<?xml version="1.0"?><Error><Code>${code}</Code><Message>${message}\nRequestId:1\nTime:2</Message></Error>`,
  })
  /** At the time of the response, whenever the test runs. */
  const wrongClock = {
    get date() {
      return new Date(Date.now() + 20.4 * 60_000).toUTCString()
    },
  }
  const NO_KEYS = { 'x-ms-error-code': 'KeyBasedAuthenticationNotPermitted' }
  const openAt = (endpoint: string) => open(azure, { ...options, endpoint })
  const askAt = async (answer: Answer, key = 'a.png') =>
    failureOf(put(await openAt((await play(answer)).url), key))

  it.each<[string, Answer, string]>([
    [
      'a wrong clock',
      refusal(403, 'AuthenticationFailed', 'x', wrongClock),
      'Failed: the clock of this machine is 20 m',
    ],
    ['an account without keys', refusal(403, '', '', NO_KEYS), 'Use a user delegation SAS as "sasToken".'],
    [
      'a lease',
      refusal(412, 'LeaseIdMissing', 'There is'),
      'LeaseIdMissing. Release the lease of the existing blob',
    ],
    [
      'a file above the limit of one request',
      refusal(413, 'RequestBodyTooLarge', 'The request body is too large'),
      'RequestBodyTooLarge. Send a smaller file: the limit is 5,000 MiB.',
    ],
    ['anything else', refusal(409, 'Immutable', 'Not permitted.'), 'Immutable: Not permitted.'],
    ['too many requests', refusal(503, 'ServerBusy', 'Busy.', { 'retry-after': '7' }), 'ServerBusy: Busy.'],
    [
      'a web server that takes everything',
      { status: 201 },
      'not a response of a blob service. Check "endpoint"',
    ],
    ['a page', { status: 404, body: '<h1>Nothing here</h1>' }, 'Nothing here'],
  ])('%s', async (_, answer, words) => {
    const failure = await askAt(answer)
    expect(failure).toMatchObject({ code: 'destination_failed', retryable: answer.status === 503 })
    expect(failure.message).toContain(words)
  })

  it.each(['HTTP/1.1 201 Created\r\nContent-Length: x\r\n\r\n', 'SSH-2.0-x\r\n', ''])(
    'something that is no HTTP, in which case the SAS token is not repeated: %j',
    async text => {
      const { origin: endpoint } = await serveRaw(socket => void socket.once('data', () => socket.end(text)))
      const sasToken = 'sv=2021-12-02&sp=racwd&sig=this-is-secret%3D'
      const target = await open(azure, { account: 'pictures1', container: 'img', sasToken, endpoint })
      const failure = await failureOf(put(target, 'a.png'))
      expect(failure.message).toMatch(/: 127\.0\.0\.1:\d+ can't be reached: /)
      expect(failure.message).not.toContain('secret')
    },
  )

  it.each([
    ['https://img.example.com', 'https'],
    ['http://img.example.com', 'https,http'],
  ])('a signed URL at %s opens the blob by %s only', async (urlPrefix, protocols) => {
    const target = await open(azure, { ...options, urlPrefix })
    const { url } = (await target.sign?.('a.png', 'GET', 60, never())) ?? { url: '' }
    expect(new URL(url).searchParams.get('spr')).toBe(protocols)
  })

  it.each(['a./b.png', 'a/b.', `${'x'.repeat(1021)}.png`])(
    'names it would change are not sent: %.20s',
    async key => {
      expect((await askAt({ status: 500 }, key)).message).toMatch(/: its object key is invalid: /)
    },
  )
})
