import { describe, expect, it } from 'vitest'
import type { UploadError } from '../../../src/errors.ts'
import type { Target } from '../../../src/providers/contract.ts'
import { failureOf } from '../../helpers/failure-of.ts'
import { type Answer, type Player, play } from '../../helpers/player.ts'
import { objectOf } from '../../helpers/provider-contract.ts'
import { openLoopbackS3 } from '../../helpers/s3-target.ts'
import { never, type Options, put } from '../../helpers/target.ts'
import { serveRaw } from '../../uploader/sources/servers.ts'

/** The bucket "pics" at an endpoint. */
const openAt = (endpoint: string, more: Options = {}) =>
  openLoopbackS3({
    ...{ endpoint, bucket: 'pics', urlPrefix: 'https://img.example.com' },
    ...{ accessKeyId: 'KEYID', secretAccessKey: 'the secret', ...more },
  })
const openPlayed = async (...answers: Parameters<typeof play>): Promise<Player & { target: Target }> => {
  const player = await play(...answers)
  return { ...player, target: openAt(player.url) }
}

/** An error document as Amazon writes it. */
function refusal(status: number, code: string, message: string, more = ''): Answer {
  return {
    status,
    headers: { 'content-type': 'application/xml' },
    body: `<?xml version="1.0"?><Error><Code>${code}</Code><Message>${message}</Message>${more}</Error>`,
  }
}

const later = () => new Date(Date.now() + 3 * 3600_000).toUTCString()

/** What a put says when the service gives this answer. */
async function putAgainst(answer: Answer, options: Options = {}): Promise<UploadError> {
  const error = await failureOf(put(openAt((await play(answer)).url, options), 'a.png'))
  expect(error.code).toBe('destination_failed')
  expect(error.message).toMatch(/^Could not store "a\.png" at s3\/Default: /)
  expect(error.message).not.toMatch(/https?:\/\/|the secret/)
  return error
}

const CLOCK = 'the clock of this machine is wrong: it is 180 minutes slow'
const NOT_HERE = 'the region is wrong: requests are signed for "us-east-1", but the bucket is in'
const PATH_STYLE = 'it rejects path-style requests'
const VIRTUAL = 'Set "addressingStyle" to "virtual".'

/** Error documents of services with their elements, what they mean, and what to do. The service's clock is ahead. */
const CODES: [status: number, code: string, more: string, meaning: string, advice: string][] = [
  [403, 'RequestTimeTooSkewed', '', CLOCK, 'Set it, for example with NTP.'],
  [
    400,
    'AuthorizationHeaderMalformed',
    '<Region>eu-1</Region>',
    `${NOT_HERE} "eu-1"`,
    'Set "region" and "endpoint"',
  ],
  [
    301,
    'PermanentRedirect',
    '<Endpoint>p.s3.x</Endpoint>',
    `${NOT_HERE} another region, at "p.s3.x"`,
    'Set "region"',
  ],
  [
    403,
    'AccessDenied',
    '<Endpoint>oss.x</Endpoint>',
    `${NOT_HERE} another region, at "oss.x"`,
    'Set "region"',
  ],
  [403, 'SecondLevelDomainForbidden', '', PATH_STYLE, VIRTUAL],
  [403, 'PathStyleDomainForbidden', '', PATH_STYLE, VIRTUAL],
  [403, 'InvalidPathAccess', '', PATH_STYLE, VIRTUAL],
  [403, 'AccessDenied', '', 'access denied', 'Allow s3:PutObject on the bucket "pics".'],
  [403, 'InvalidAccessKeyId', '', 'unknown access key ID', 'Check "accessKeyId".'],
  [
    403,
    'SignatureDoesNotMatch',
    '',
    'the signature does not match',
    'Check "secretAccessKey", and "region", which is',
  ],
  [400, 'ExpiredToken', '', 'the session token is invalid or expired', 'Get new temporary credentials.'],
  [
    404,
    'NoSuchBucket',
    '',
    'the bucket "pics" does not exist',
    'Check "bucket", "region", and "addressingStyle"',
  ],
  [400, 'AccessControlListNotSupported', '', 'the bucket does not allow ACLs', 'Remove "acl"'],
  [403, 'QuotaExceeded', '', 'no space left, or the quota is exceeded', 'Free some space there'],
  [400, 'KMS.NotFoundException', '', "the KMS key can't be used", 'Check "sseKmsKeyId" and its permissions.'],
]

describe('what a refusal says', () => {
  it.each(CODES)('%i %s %s: %s', async (status, code, more, meaning, advice) => {
    const answer = refusal(status, code, 'x', more)
    const date = meaning === CLOCK ? later() : new Date().toUTCString()
    const error = await putAgainst({ ...answer, headers: { ...answer.headers, date } })
    expect(error.message).toContain(` returned ${status} (${meaning}): ${code}: x. ${advice}`)
    expect(error.retryable).toBe(false)
  })

  it('the clock is behind, in a vendor’s own words', async () => {
    const { headers, ...answer } = refusal(403, 'SomeDenial', 'Request has expired')
    expect((await putAgainst({ ...answer, headers: { ...headers, date: later() } })).message).toContain(CLOCK)
  })

  const NONE = /so it is not from an S3 service\. Check "endpoint"/
  const ELSEWHERE = /a redirect\): redirect to console\.example\.com\/login\. Set "endpoint" to the final URL/
  const PAGE = { 'content-type': 'text/html' }
  it.each<[string, Answer, RegExp]>([
    [
      'it sends us elsewhere',
      { status: 302, headers: { location: 'https://console.example.com/login' } },
      ELSEWHERE,
    ],
    ['it says yes to everything', { status: 200, body: '<html>welcome</html>' }, NONE],
    ['it has the ETag of something else', { status: 200, headers: { etag: `"${'0'.repeat(32)}"` } }, NONE],
    [
      'a page',
      { status: 404, headers: PAGE, body: '<h1>Not here</h1>' },
      /404 \(not found\): Not here\. Check/,
    ],
    [
      'a word nobody knows, with markup and an address in it',
      refusal(409, 'Strange', 'See &lt;b&gt;http://example.com/x&lt;/b&gt;.'),
      /127\.0\.0\.1:\d+ returned 409: Strange: See example\.com\/x ?\. Check/,
    ],
  ])('%s', async (_, answer, words) => {
    const error = await putAgainst(answer)
    expect(error.message).toMatch(words)
    expect(error.retryable).toBe(false)
  })

  it('attack: a name that it quotes has an address, a signature and no end', async () => {
    const long = '&lt;b&gt;http://evil.example/ Signature=abcdef0123456789 '.repeat(99)
    const { message } = await putAgainst(
      refusal(400, `Strange${long}`, 'x', `<Region>${long}</Region><Endpoint>${long}</Endpoint>`),
    )
    expect(message).toContain('evil.example')
    expect(message).not.toMatch(/http:|abcdef0|<b>/)
    expect(message.length).toBeLessThan(1500)
  })

  it('reads no answer without end', async () => {
    const error = await putAgainst({ status: 400, body: 'x'.repeat(3 * 1024 * 1024) })
    expect(error.message).toMatch(/returned 400: x*… Check/)
    expect(error.message.length).toBeLessThan(500)
  })

  it('ends at once when the server turns to another protocol', async () => {
    const { origin } = await serveRaw(socket => {
      socket.once('data', () =>
        socket.write('HTTP/1.1 101 Other\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n'),
      )
    })
    const error = await failureOf(put(openAt(origin), 'a.png'))
    expect(error.message).toMatch(/can't be reached: it closed the connection\./)
  })

  it('says that a key cannot be sent, and does not repeat it', async () => {
    const error = await putAgainst({ status: 200 }, { sessionToken: 'the token\n' })
    expect(error.message).toContain('Check the ends of "accessKeyId" and "sessionToken"')
    expect(error.message).not.toContain('the token')
  })

  it('names the permission for ACLs when one is set', async () => {
    const error = await putAgainst(refusal(403, 'AccessDenied', 'x'), { acl: 'public-read' })
    expect(error.message).toContain('s3:PutObject and s3:PutObjectAcl')
  })

  it('names the options a service may not know', async () => {
    const options = { serverSideEncryption: 'aws:kms', storageClass: 'COLD' }
    const error = await putAgainst(refusal(501, 'NotImplemented', 'x'), options)
    expect(error.message).toContain(
      '(it may not support "storageClass" or "serverSideEncryption"): NotImplemented: x. If so, remove that option',
    )
  })

  it('cannot tell wrong keys from missing permissions when the answer has no document', async () => {
    const { port, target } = await openPlayed({ status: 403 })
    const error = await failureOf(target.exists?.('a.png', never()))
    expect(error.message).toBe(
      `Could not look for "a.png" at s3/Default: 127.0.0.1:${port} returned 403 (access denied, or invalid credentials). Allow s3:GetObject and s3:ListBucket on the bucket "pics", or check "accessKeyId".`,
    )
  })
})

describe('the end of an upload in parts', () => {
  const LIMIT = 5 * 1024 * 1024

  /** What a put in two parts says when its last request, or its first, gets these answers, and how often it was sent. */
  async function completeAgainst(
    answers: Answer[],
    begin = '<UploadId>u&amp;1</UploadId>',
    part: Answer = { status: 200, headers: { etag: '"a&b"' } },
  ) {
    const player = await play(({ method, url }) => {
      if (url.endsWith('?uploads=')) return { status: 200, body: begin }
      if (method === 'POST') return answers.shift() ?? { status: 500 }
      return part
    })
    const target = openAt(player.url, { multipartThreshold: '5MB' })
    const put = target.put(objectOf('a.bin', Buffer.alloc(LIMIT + 1)), never())
    return { put, sent: () => player.requests.filter(({ url }) => url === '/pics/a.bin?uploadId=u%261') }
  }
  const done = { status: 200, body: '<CompleteMultipartUploadResult/>' }

  it('is asked for again when the service fails after it has said 200', async () => {
    const { put, sent } = await completeAgainst([refusal(200, 'InternalError', 'Try again.'), done])
    await put
    expect(sent().map(({ method }) => method)).toEqual(['POST', 'POST'])
    expect(sent()[1]?.text).toMatch(
      /^<CompleteMultipartUpload [^>]*><Part><PartNumber>1<\/PartNumber><ETag>&quot;a&amp;b&quot;<\/ETag><\/Part><Part><PartNumber>2</,
    )
  })

  it('takes an upload back that is refused with 200', async () => {
    const { put, sent } = await completeAgainst([refusal(200, 'InvalidPart', 'No such part.')])
    expect((await failureOf(put)).message).toMatch(
      /returned 200 \(it failed nevertheless\): InvalidPart: No such part\. Check/,
    )
    expect(sent().map(({ method }) => method)).toEqual(['POST', 'DELETE'])
  })

  it('is asked for once when the upload is gone, and all may be sent again', async () => {
    const { put, sent } = await completeAgainst([refusal(404, 'NoSuchUpload', 'x'), done])
    expect(await failureOf(put)).toMatchObject({ retryable: true })
    expect(sent().map(({ method }) => method)).toEqual(['POST', 'DELETE'])
  })

  const PAGE = { status: 200, body: '<html>welcome</html>' }
  it.each<[string, Parameters<typeof completeAgainst>, string]>([
    ['the beginning', [[], PAGE.body], 'UploadId'],
    ['a part', [[], undefined, { status: 200 }], 'ETag'],
    ['the end', [[PAGE]], 'CompleteMultipartUploadResult'],
  ])('is not believed when %s was answered by no S3 service', async (_, parameters, name) => {
    const { put } = await completeAgainst(...parameters)
    expect((await failureOf(put)).message).toContain(
      `the response has no ${name}, so it is not from an S3 service`,
    )
  })
})

it.each([
  ['NoSuchKey', true],
  ['NoSuchBucket', false],
])('a removal that is refused by %s is done: %s', async (code, isDone) => {
  const answer = refusal(404, code, 'x')
  const { target } = await openPlayed({ ...answer, headers: { 'x-amz-request-id': '1' } })
  const removal = target.remove?.('a.png', never())
  if (isDone) await removal
  else await expect(removal).rejects.toThrow('the bucket "pics" does not exist')
})

describe('what passes and is tried again', () => {
  it.each<[string, Answer, boolean]>([
    ['500 InternalError', refusal(500, 'InternalError', 'x'), true],
    ['503 SlowDown', refusal(503, 'SlowDown', 'x'), true],
    ['502 of a proxy', { status: 502, headers: { 'content-type': 'text/html' }, body: '<h1>bad</h1>' }, true],
    ['429', { status: 429 }, true],
    ['408', { status: 408 }, true],
    ['400 RequestTimeout', refusal(400, 'RequestTimeout', 'x'), true],
    ['409 OperationAborted', refusal(409, 'OperationAborted', 'x'), true],
    ['501 NotImplemented', refusal(501, 'NotImplemented', 'x'), false],
    ['507 XMinioStorageFull', refusal(507, 'XMinioStorageFull', 'x'), false],
    ['400 InvalidRequest', refusal(400, 'InvalidRequest', 'x'), false],
    ['403 RequestTimeTooSkewed', refusal(403, 'RequestTimeTooSkewed', 'x'), false],
  ])('%s', async (_, answer, isTransient) => {
    expect((await putAgainst(answer)).retryable).toBe(isTransient)
  })

  it('comes back when the service says', async () => {
    const answer = { ...refusal(503, 'SlowDown', 'x'), headers: { 'retry-after': '7' } }
    expect(await putAgainst(answer)).toMatchObject({ retryable: true, retryAfterS: 7 })
  })
})
