import { describe, expect, it } from 'vitest'
import { defectOf } from '../../src/payload/object-key.ts'
import type { Provider } from '../../src/providers/contract.ts'
import { github } from '../../src/providers/github.ts'
import { http } from '../../src/providers/http/index.ts'
import { imgur } from '../../src/providers/imgur.ts'
import { local } from '../../src/providers/local/index.ts'
import { lsky } from '../../src/providers/lsky.ts'
import { piclist } from '../../src/providers/piclist.ts'
import { s3 } from '../../src/providers/s3/index.ts'
import { aliyun, qiniu, tcyun } from '../../src/providers/s3/vendors.ts'
import { sftp } from '../../src/providers/sftp/index.ts'
import { readPicGo } from '../../src/providers/shared/picgo-options.ts'
import { smms } from '../../src/providers/smms.ts'
import { upyun } from '../../src/providers/upyun/index.ts'
import { webdav } from '../../src/providers/webdav/index.ts'
import { problemOf } from '../helpers/target.ts'

type Options = Readonly<Record<string, unknown>>

const HASHED = '{filename}-{sha256-8}{extname}'
const EXAMPLE = 'https://img.example.com'
/** Names of hosts that name files themselves. */
const OWN = { keyTemplate: '{filename}{extname}' }
const PIN = 'Set "hostFingerprint" to pin it'
const NO_CA = 'Certificates are verified'

/** What PicGo or PicList saves, what it becomes, and the notes. */
const SAVED: readonly [provider: Provider, theirs: Options, ours: Options, ...notes: string[]][] = [
  [
    aliyun,
    {
      ...{ accessKeyId: 'LTAI', accessKeySecret: 'the secret', bucket: 'pics', area: 'oss-cn-hangzhou' },
      ...{ path: 'img/blog/', customUrl: `${EXAMPLE}/`, options: '?x-oss-process=style/small' },
    },
    {
      ...{ accessKeyId: 'LTAI', secretAccessKey: 'the secret', bucket: 'pics', region: 'cn-hangzhou' },
      ...{ urlPrefix: EXAMPLE, urlSuffix: '?x-oss-process=style/small', keyTemplate: `img/blog/${HASHED}` },
    },
  ],
  [
    tcyun,
    {
      ...{ version: 'v5', secretId: 'AKID', secretKey: 'the secret', bucket: 'pics-1250000000' },
      ...{ appId: '1250000000', area: 'ap-guangzhou', endpoint: '', path: '', customUrl: '' },
      ...{ options: '?imageMogr2/thumbnail/!50p', slim: true },
    },
    {
      ...{ accessKeyId: 'AKID', secretAccessKey: 'the secret', bucket: 'pics-1250000000' },
      ...{ region: 'ap-guangzhou', urlSuffix: '?imageMogr2/thumbnail/!50p&imageSlim', keyTemplate: HASHED },
    },
  ],
  [
    qiniu,
    {
      ...{ accessKey: 'AK', secretKey: 'the secret', bucket: 'pics', url: EXAMPLE, area: 'z2' },
      ...{ options: '?imageslim', path: 'img/' },
    },
    {
      ...{ accessKeyId: 'AK', secretAccessKey: 'the secret', bucket: 'pics', urlPrefix: EXAMPLE },
      ...{ region: 'cn-south-1', urlSuffix: '?imageslim', keyTemplate: `img/${HASHED}` },
    },
  ],
  [
    s3,
    {
      ...{ accessKeyID: 'AKIA', secretAccessKey: 'the secret', bucketName: 'pics', region: 'eu-central-1' },
      ...{ uploadPath: '{year}/{month}/{md5}.{extName}', endpoint: '', proxy: '', urlPrefix: `${EXAMPLE}/` },
      ...{ pathStyleAccess: false, acl: 'public-read' },
    },
    {
      ...{ accessKeyId: 'AKIA', secretAccessKey: 'the secret', bucket: 'pics', region: 'eu-central-1' },
      ...{ urlPrefix: EXAMPLE, addressingStyle: 'virtual', acl: 'public-read' },
      keyTemplate: '{Y}/{m}/{md5}{extname}',
    },
  ],
  [
    upyun,
    {
      ...{ operator: 'operator123', password: 'the secret', bucket: 'pics', url: `${EXAMPLE}/` },
      ...{ options: '!thumb', path: 'blog/img/', antiLeechToken: 'leech', expireTime: '3600' },
      endpoint: 'v1.api.upyun.com',
    },
    {
      ...{ operator: 'operator123', password: 'the secret', bucket: 'pics', urlPrefix: EXAMPLE },
      ...{ urlSuffix: '!thumb', antiLeechToken: 'leech', antiLeechFor: '60m' },
      ...{ endpoint: 'https://v1.api.upyun.com', keyTemplate: `blog/img/${HASHED}` },
    },
  ],
  [
    webdav,
    {
      ...{ host: 'https://nas.example.com/dav/', sslEnabled: true, username: 'me', password: 'the secret' },
      ...{ path: '/img/blog/', webpath: 'pictures ä', customUrl: EXAMPLE, authType: 'digest' },
      options: '!thumb "x"',
    },
    {
      ...{ url: 'https://nas.example.com/dav', username: 'me', password: 'the secret' },
      ...{ authType: 'digest', directory: 'img/blog', urlPrefix: `${EXAMPLE}/pictures%20%C3%A4` },
      ...{ urlSuffix: '!thumb%20%22x%22', keyTemplate: HASHED },
    },
  ],
  [
    sftp,
    {
      ...{ host: '192.0.2.10', port: 22, username: 'u', password: 'the secret', uploadPath: '/var/www/img/' },
      ...{ customUrl: `${EXAMPLE}/`, webPath: '/img/ü', fileMode: '0664', dirMode: '0775' },
    },
    {
      ...{ host: '192.0.2.10', port: 22, username: 'u', password: 'the secret', directory: '/var/www/img' },
      ...{ urlPrefix: `${EXAMPLE}/img/%C3%BC`, fileMode: '0664', directoryMode: '0775', keyTemplate: HASHED },
    },
    PIN,
  ],
  [
    local,
    { path: '/srv/pictures', customUrl: ` ${EXAMPLE}/a/ `, webPath: '/' },
    { directory: '/srv/pictures', urlPrefix: `${EXAMPLE}/a`, keyTemplate: HASHED },
  ],
  [
    github,
    { repo: ' octo/img ', token: 'the secret', path: 'img/', customUrl: `${EXAMPLE}/` },
    {
      ...{ repo: 'octo/img', token: 'the secret', branch: 'master', urlPrefix: EXAMPLE },
      keyTemplate: `img/${HASHED}`,
    },
  ],
  [imgur, { clientId: 'abc', proxy: '' }, { clientId: 'abc', ...OWN }],
  [
    lsky,
    {
      ...{ host: `${EXAMPLE}/`, version: 'V2', token: 'Bearer 1|abc', strategyId: '3', albumId: '' },
      permission: { name: 'public', value: 1 },
    },
    { url: `${EXAMPLE}/`, version: 'v2', token: '1|abc', strategyId: '3', permission: 'public', ...OWN },
    NO_CA,
  ],
  [
    piclist,
    { host: '10.0.0.5', port: 36677, picbed: 'smms', configName: 'Default', serverKey: 'abc' },
    {
      ...{ url: 'http://10.0.0.5:36677', picbed: 'smms', configName: 'Default' },
      ...{ serverKey: 'abc', keyInQuery: true, ...OWN },
    },
    '"keyInQuery"',
  ],
  [smms, { token: 'abc', backupDomain: '' }, { token: 'abc', ...OWN }, 'SM.MS is now S.EE'],
  [
    http,
    {
      ...{ url: `${EXAMPLE}/up?token=a%20b&x={y}`, paramName: 'image', jsonPath: 'data.url' },
      customHeader: '{"Authorization":"Bearer abc","Content-Type":"multipart/form-data","X-A":"{b}"}',
      customBody: '{"album":"5","count":3,"token":"def","contentType":"photo"}',
    },
    {
      ...{
        url: `${EXAMPLE}/up?token={secret:token}&x=\\{y\\}`,
        field: 'image',
        resultUrl: 'data.url',
        ...OWN,
      },
      headers: { Authorization: '{secret:Authorization}', 'X-A': '\\{b\\}' },
      fields: { album: '5', count: '3', token: '{secret:token-2}', contentType: 'photo' },
      secrets: { token: 'a b', Authorization: 'Bearer abc', 'token-2': 'def' },
    },
  ],
]

/** Options that differ from the saved ones, what else they become, and the notes. */
const MORE: typeof SAVED = [
  [aliyun, { path: '', customUrl: null, options: false }, { urlPrefix: undefined, keyTemplate: HASHED }],
  [aliyun, { options: null }, { urlSuffix: undefined }],
  [aliyun, { customUrl: 'img.example.com' }, {}, '"customUrl" has no scheme, so https was assumed'],
  [aliyun, { customUrl: 'http://img.example.com//' }, { urlPrefix: 'http://img.example.com' }],
  [aliyun, { customUrl: `${EXAMPLE}/?a=b` }, { urlPrefix: undefined }, '"customUrl" was not imported'],
  [aliyun, { options: '!small' }, { urlSuffix: '!small' }],
  [aliyun, { options: '?text_5paH(1)' }, { urlSuffix: '?text_5paH%281%29' }],
  [aliyun, { options: '?a="b c"' }, { urlSuffix: '?a=%22b%20c%22' }],
  [aliyun, { options: '?文' }, { urlSuffix: '?%E6%96%87' }],
  [aliyun, { webPath: '/cdn/' }, { path: 'img/blog/', webPath: '/cdn/', keyTemplate: HASHED }],
  [aliyun, { path: '../{nothing}' }, { keyTemplate: HASHED }, '"path" was not imported'],
  [tcyun, { options: '' }, { urlSuffix: '?imageSlim' }],
  [tcyun, { options: '', slim: false }, { urlSuffix: undefined }],
  [
    tcyun,
    { version: 'v4', bucket: 'pics', area: 'sh', appId: 1250000000 },
    { region: 'ap-shanghai' },
    'Version "v4" used URLs at another host',
  ],
  [tcyun, { endpoint: 'cos.accelerate.myqcloud.com' }, { endpoint: 'cos.accelerate.myqcloud.com' }],
  [qiniu, { area: 'z0' }, { region: 'cn-east-1' }],
  [qiniu, { area: 'z1' }, { region: 'cn-north-1' }],
  [qiniu, { area: 'na0' }, { region: 'us-north-1' }],
  [qiniu, { area: 'as0' }, { region: 'ap-southeast-1' }],
  [qiniu, { area: 'cn-east-2' }, { region: 'cn-east-2' }],
  ...(
    [
      ['{year}{month}{day}/{fullName}', '{Y}{m}{d}/{filename}{extname}'],
      ['/a//{fileName}-{timestampMS}.{extName}', 'a//{filename}-{timestamp}{extname}'],
      ['{md5B64Short}-{timestamp}.{extName}', '{md5-8}-{timestampS}{extname}'],
      ['{sha256}.png', '{sha256}.png'],
      ['img/{year}', `img/{Y}/${HASHED}`],
      ['img/blog/', `img/blog/${HASHED}`],
      ['', HASHED],
      [undefined, HASHED],
    ] as const
  ).map(([uploadPath, keyTemplate]): (typeof MORE)[number] => [s3, { uploadPath }, { keyTemplate }]),
  [s3, { uploadPath: '{unknown}/x' }, { keyTemplate: HASHED }, '"path" was not imported'],
  [s3, { endpoint: 's3.us-west-000.backblazeb2.com', region: '' }, { region: undefined }],
  [
    s3,
    { endpoint: 'https://0a.r2.cloudflarestorage.com', region: 'auto' },
    { acl: undefined, region: 'auto' },
    '"acl" was not imported',
  ],
  [s3, { endpoint: 'http://minio.lan:9000', pathStyleAccess: 'true' }, { addressingStyle: 'path' }],
  // PicList appends the bucket to a URL of path style, unless it is told not to. The plugin of PicGo never does.
  [s3, { pathStyleAccess: true, disableBucketPrefixToURL: false }, { urlPrefix: `${EXAMPLE}/pics` }],
  [s3, { pathStyleAccess: true, disableBucketPrefixToURL: 'true' }, { urlPrefix: EXAMPLE }],
  [s3, { pathStyleAccess: true }, { urlPrefix: EXAMPLE }],
  // Without a URL, the vendor's is used if the ACL is public. Otherwise URLs are signed.
  [s3, { urlPrefix: '' }, { urlPrefix: undefined }],
  [
    s3,
    { urlPrefix: '', endpoint: 'https://s3.example.com/', pathStyleAccess: true },
    { urlPrefix: 'https://s3.example.com/pics' },
  ],
  [s3, { urlPrefix: '', endpoint: 'https://s3.example.com/' }, { urlPrefix: 'https://pics.s3.example.com' }],
  [
    s3,
    { urlPrefix: '', acl: 'auto', options: 'a=b' },
    { linkType: 'presigned', acl: undefined },
    'URLs are signed and expire after 7 days',
    '"options" was not imported',
  ],
  [
    s3,
    { proxy: 'ftp://127.0.0.1:7890', rejectUnauthorized: false },
    { proxy: undefined },
    '"rejectUnauthorized" was not imported',
    '"proxy" was not imported',
  ],
  [s3, { proxy: '127.0.0.1:7890' }, { proxy: 'http://127.0.0.1:7890' }],
  [upyun, { options: '', path: null, endpoint: false }, { urlSuffix: undefined, endpoint: undefined }],
  [upyun, { antiLeechToken: '', expireTime: '' }, { antiLeechToken: undefined, antiLeechFor: undefined }],
  [webdav, { customUrl: 'img.example.com/' }, {}, '"customUrl" has no scheme, so https was assumed'],
  [webdav, { host: '192.0.2.7:5005', sslEnabled: false }, { url: 'http://192.0.2.7:5005' }],
  [webdav, { host: 'http://nas.lan', sslEnabled: false }, { url: 'http://nas.lan' }],
  [
    webdav,
    { host: 'nas.lan', sslEnabled: false, customUrl: '', webpath: 'b' },
    { urlPrefix: 'http://nas.lan/b' },
  ],
  [webdav, { path: 'a', webpath: '' }, { urlPrefix: `${EXAMPLE}/a` }],
  [webdav, { path: null, webpath: false, customUrl: '' }, { directory: '', urlPrefix: undefined }],
  [
    sftp,
    { customUrl: '', webPath: '' },
    { urlPrefix: 'http://192.0.2.10/var/www/img' },
    PIN,
    '"customUrl" is',
  ],
  [sftp, { customUrl: 'x.org' }, { urlPrefix: 'https://x.org/img/%C3%BC' }, 'https was assumed', PIN],
  [sftp, { uploadPath: '' }, { directory: '/' }, PIN],
  [sftp, { port: '2222' }, { port: 2222 }, PIN],
  [sftp, { port: 'x' }, { port: undefined }, PIN],
  [
    sftp,
    { privateKey: '~/.ssh/id', passphrase: 'x' },
    { privateKeyFile: '~/.ssh/id', passphrase: 'x', password: undefined },
    PIN,
  ],
  [sftp, { fileUser: 'www-data' }, { fileUser: undefined }, '"fileUser" was not imported', PIN],
  [sftp, { fileMode: 'u+w' }, { fileMode: undefined }, PIN, '"fileMode" was not imported'],
  [sftp, { dirMode: '0664' }, { directoryMode: undefined }, PIN, '"dirMode" was not imported'],
  [local, { webPath: 'b/c' }, { urlPrefix: `${EXAMPLE}/a/b/c`, serve: undefined }],
  [local, { webPath: '图\\a b#?' }, { urlPrefix: `${EXAMPLE}/a/%E5%9B%BE/a%20b%23%3F` }],
  [local, { customUrl: undefined }, { serve: true, urlPrefix: undefined }, 'This server serves the files'],
  [local, { customUrl: '' }, { serve: true, urlPrefix: undefined }, 'This server serves the files'],
  ...['ftp://img.example.com', `${EXAMPLE}/?q=`].map((customUrl): (typeof SAVED)[number] => [
    ...([local, { customUrl }, { serve: true, urlPrefix: undefined }] as const),
    ...['"customUrl" was not imported', 'This server serves the files'],
  ]),
  [github, { path: '/a/b', customUrl: '', branch: 'x' }, { branch: 'x', keyTemplate: `a/b/${HASHED}` }],
  [github, { path: '../up' }, { keyTemplate: HASHED }, '"path" was not imported'],
  [github, { path: '{x}' }, { keyTemplate: HASHED }, '"path" was not imported'],
  [github, { customUrl: 'img.example.com' }, {}, '"customUrl" has no scheme, so https was assumed'],
  [github, { customUrl: `${EXAMPLE}/?x=` }, { urlPrefix: undefined }, '"customUrl" was not imported'],
  // PicList uses the token only with a user name.
  [
    imgur,
    { username: 'me', accessToken: 'Bearer t0k', album: 'Holidays' },
    { accessToken: 't0k', clientId: undefined },
    '"album" was not imported',
  ],
  [imgur, { username: '', accessToken: 't0k' }, { accessToken: undefined, clientId: 'abc' }],
  [imgur, { proxy: '127.0.0.1:7890' }, { proxy: 'http://127.0.0.1:7890' }],
  [imgur, { proxy: 'socks4://127.0.0.1:7890' }, { proxy: undefined }, '"proxy" was not imported'],
  [lsky, { permission: 0 }, { permission: 'private' }, NO_CA],
  [lsky, { permission: 1 }, { permission: 'public' }, NO_CA],
  [lsky, { permission: 'private(default)' }, { permission: undefined }, NO_CA],
  [
    piclist,
    { host: '', port: '', picbed: '', configName: '', serverKey: '' },
    { url: 'http://127.0.0.1:36677', picbed: undefined, configName: undefined, keyInQuery: undefined },
  ],
  [smms, { backupDomain: 'smms.example' }, { url: 'https://smms.example/api/v2/upload' }],
  [http, { jsonPath: '' }, { resultUrl: undefined }],
  [http, { jsonPath: '0.src' }, { resultUrl: '0.src' }],
  [http, { customHeader: { 'X-A': 'b' } }, { headers: { 'X-A': 'b' } }],
  [http, { customHeader: 'X-A: b' }, { headers: {} }, '"customHeader" was not imported'],
  [http, { customHeader: '[1]' }, { headers: {} }, '"customHeader" was not imported'],
  [http, { customHeader: '' }, { headers: {} }],
  [http, { customHeader: undefined }, { headers: {} }],
  // PicList's custom uploader.
  [
    http,
    {
      ...{ endpoint: EXAMPLE, method: 'put', formDataKey: 'image', headers: '{}', body: '{"a":"b"}' },
      ...{
        uploadScriptName: '',
        resDataPath: 'data.path',
        customPrefix: 'https://cdn.example.com',
        webPath: '',
      },
    },
    {
      ...{ url: EXAMPLE, method: 'PUT', field: 'image', headers: {}, fields: { a: 'b' } },
      resultUrl: 'https://cdn.example.com{json:data.path}',
    },
  ],
  [http, { endpoint: EXAMPLE }, { url: EXAMPLE, method: 'POST', resultUrl: 'data.url' }],
  [
    http,
    { endpoint: EXAMPLE, resDataPath: 'data.path', customPrefix: 'https://cdn.example.com/', webPath: 'img' },
    { resultUrl: 'https://cdn.example.com/img/{regex:{json:data.path}|[^/]*$|0}' },
  ],
  [
    http,
    { uploadScriptName: 'mine', endpoint: EXAMPLE, method: 'GET' },
    { method: undefined },
    '"uploadScriptName" was not imported',
    '"method" was not imported',
  ],
]

const read = ({ picgo, type }: Provider, options: Options) =>
  readPicGo(options, picgo ?? expect.fail(`${type} reads no options of PicGo`))

/** What comes out has to be a configuration that can be used. */
function translate(provider: Provider, theirs: Options) {
  const { options, notes } = read(provider, theirs)
  const { keyTemplate, proxy: _, ...own } = JSON.parse(JSON.stringify(options))
  expect(problemOf(provider, own)).toBeUndefined()
  expect(defectOf(keyTemplate)).toBeUndefined()
  return { options, notes }
}

describe('options of PicGo and PicList', () => {
  it.each(SAVED)('$type: become ours', (provider, theirs, ours, ...words) => {
    const notes = words.map(text => expect.stringContaining(text))
    expect(translate(provider, theirs)).toEqual({ options: ours, notes })
  })

  it.each(MORE)('$type: %j becomes %j', (provider, theirs, expected, ...words) => {
    const [, saved] = SAVED.find(([one]) => one === provider) ?? []
    const { options, notes } = translate(provider, { ...saved, ...theirs })
    for (const [name, value] of Object.entries(expected)) expect(options[name], name).toEqual(value)
    expect(notes).toEqual(words.map(text => expect.stringContaining(text)))
    expect(notes.join('\n')).not.toContain('the secret')
  })

  it('of any kind make it throw nothing', () => {
    for (const value of [null, 1, true, [], {}, '\ud800', '{', '://', 'http://', '../..', '\u0000'])
      for (const [provider, theirs] of SAVED) {
        const names = [...Object.keys(theirs), 'options', 'path', 'webPath']
        const options = Object.fromEntries(names.map(name => [name, value]))
        expect(() => read(provider, options)).not.toThrow()
      }
  })
})
