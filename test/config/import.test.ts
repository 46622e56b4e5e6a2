import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { importPicGo } from '../../src/config/import.ts'
import { loadConfig } from '../../src/config/load.ts'
import { openDestinations } from '../../src/uploader/delivery/destinations.ts'
import { makeDirectory } from '../helpers/directory.ts'

/** Every uploader of PicGo-Core 3 and PicList-Core with the options their forms ask for. */
const UPLOADERS: Record<string, Record<string, unknown>> = {
  aliyun: {
    accessKeyId: 'LTAI',
    accessKeySecret: 'secret-aliyun',
    bucket: 'pics',
    area: 'oss-cn-beijing',
    path: 'img/',
    customUrl: 'https://a.example.com',
    options: '?x-oss-process=style/x',
  },
  tcyun: {
    version: 'v5',
    secretId: 'AKID',
    secretKey: 'secret-tcyun',
    bucket: 'pics-125',
    appId: '125',
    area: 'ap-nanjing',
    endpoint: '',
    path: 'img/',
    customUrl: '',
    options: '',
    slim: false,
  },
  qiniu: {
    accessKey: 'ak',
    secretKey: 'secret-qiniu',
    bucket: 'pics',
    url: 'https://q.example.com',
    area: 'z0',
    options: '',
    path: '',
  },
  upyun: {
    bucket: 'pics',
    operator: 'op',
    password: 'secret-upyun',
    url: 'https://u.example.com',
    options: '',
    path: 'img/',
  },
  github: { repo: 'someone/pics', branch: 'main', token: 'secret-github', path: 'img/', customUrl: '' },
  imgur: { clientId: 'secret-imgur', proxy: '' },
  smms: { token: 'secret-smms', backupDomain: '' },
  local: { path: '/srv/pics', customUrl: 'https://l.example.com', webPath: '' },
  webdavplist: {
    host: 'https://dav.example.com',
    sslEnabled: true,
    username: 'me',
    password: 'secret-dav',
    path: 'img',
    webpath: '',
    customUrl: 'https://d.example.com',
    authType: 'basic',
    options: '',
  },
  sftpplist: {
    host: 'sftp.example.com',
    port: 22,
    username: 'me',
    password: 'secret-sftp',
    privateKey: '',
    passphrase: '',
    uploadPath: '/srv/img',
    customUrl: 'https://s.example.com',
    webPath: '',
    fileUser: '',
    fileMode: '0664',
    dirMode: '0775',
  },
  lskyplist: {
    version: 'V2',
    host: 'https://lsky.example.com',
    token: 'secret-lsky',
    strategyId: '',
    albumId: '',
    permission: '',
  },
  piclist: { host: '127.0.0.1', port: 36677, picbed: '', configName: '', serverKey: 'secret-piclist' },
  'aws-s3-plist': {
    accessKeyID: 'AKIA',
    secretAccessKey: 'secret-s3',
    bucketName: 'pics',
    uploadPath: '{year}/{month}/{md5}.{extName}',
    region: 'us-east-1',
    endpoint: 'https://s3.example.com',
    proxy: '',
    urlPrefix: 'https://cdn.example.com',
    pathStyleAccess: true,
    rejectUnauthorized: true,
    acl: 'private',
    disableBucketPrefixToURL: false,
  },
}

function fileWith(types: readonly string[], more: object = {}) {
  const uploader = Object.fromEntries(
    types.map(type => [
      type,
      {
        configList: [{ _id: `id-${type}`, _configName: 'Mine', ...UPLOADERS[type] }],
        defaultId: `id-${type}`,
      },
    ]),
  )
  return { picBed: { uploader: types[0], current: types[0] }, uploader, ...more }
}

async function load(value: object) {
  const directory = await makeDirectory()
  const file = join(directory, 'data.json')
  await writeFile(file, JSON.stringify(value))
  return loadConfig({ env: { XDG_DATA_HOME: directory }, platform: 'linux', cwd: directory, file })
}

describe('a file of PicGo or PicList', () => {
  it('with every uploader is read and opened as it is', async () => {
    const config = await load(fileWith(Object.keys(UPLOADERS)))
    expect(config.settings.default).toBe('aliyun/Mine')
    expect(config.destinations.map(one => one.type).sort()).toEqual(
      [
        'aliyun',
        'tcyun',
        'qiniu',
        'upyun',
        'github',
        'imgur',
        'smms',
        'local',
        'webdav',
        'sftp',
        'lsky',
        'piclist',
        's3',
      ].sort(),
    )
    const opened = await openDestinations(config.destinations, config.settings.keyTemplate, () => {})
    await Promise.all(opened.map(one => one.target.close?.()))
    expect(opened).toHaveLength(13)
    const secrets = Object.keys(UPLOADERS).filter(type => type !== 'local')
    expect(config.secrets.filter(text => text.startsWith('secret-'))).toHaveLength(secrets.length)
  })

  it('has equal names replace each other, as there, unless the name holds the content', async () => {
    const rename = (format: string) => ({ buildIn: { rename: { enable: true, format } } })
    for (const [format, onConflict] of [
      ['{filename}', 'replace'],
      ['{filename}-{md5}', undefined],
    ] as const) {
      const config = await load(fileWith(['github', 'local'], rename(format)))
      const chosen = config.destinations.map(({ common }) => common.onConflict)
      expect(chosen).toEqual([onConflict, onConflict])
    }
  })

  it.each(Object.keys(UPLOADERS))('with %s alone makes it the default destination', async type => {
    const config = await load(fileWith([type]))
    expect(config.destinations).toHaveLength(1)
    expect(config.destinations[0]?.name).toBe('Mine')
  })

  it.each(Object.keys(UPLOADERS))(
    'with %s left unfinished says which option is missing, without a stack',
    async type => {
      const broken = fileWith([type])
      const [first] = Object.values(broken.uploader)
      const [one] = first!.configList as Record<string, unknown>[]
      const kept = ['_id', '_configName', Object.keys(UPLOADERS[type]!)[1]!]
      for (const name of Object.keys(one!)) if (!kept.includes(name)) one![name] = ''
      const failure = await load(broken).then(
        () => undefined,
        (error: Error) => error,
      )
      if (failure === undefined) return // nothing of it is needed
      expect(failure.name).toBe('ConfigError')
      expect(failure.message).toMatch(/providers\.|picBed/)
    },
  )

  it('keeps folders and renaming', async () => {
    const { config } = await importPicGo(
      fileWith(['github'], { buildIn: { rename: { enable: true, format: '{Y}-{md5-16}' } } }),
    )
    expect(config).toMatchObject({
      providers: { github: { Mine: { keyTemplate: 'img/{Y}-{md5-16}{extname}' } } },
    })
  })

  it('keeps its rules for links', async () => {
    const rules = [
      { match: '^https://raw\\.', replace: 'https://cdn.', enable: true, ignoreCase: true },
      { match: 'x', replace: 'y', enable: false },
      { match: '(', replace: 'y' },
    ]
    const { config, notes } = await importPicGo(
      fileWith(['github', 'local'], { settings: { urlRewrite: { rules } } }),
    )
    const urlRewrite = [{ from: '^https://raw\\.', to: 'https://cdn.', flags: 'i' }]
    expect(config).toMatchObject({
      providers: { github: { Mine: { urlRewrite } }, local: { Mine: { urlRewrite } } },
    })
    expect(notes.join()).toContain('has a rule that was left out: "("')
  })
})
