/** A place where files may go, as a person thinks of it. Several may be of one provider. */
export interface Place {
  readonly label: string
  readonly hint?: string
  /** Provider. */
  readonly type: string
  /** What need not be asked. */
  readonly options?: Readonly<Record<string, unknown>>
  /** Options that are asked for, in this order; with a question mark those that may stay empty. */
  readonly asks: readonly string[]
  /** Where credentials are made. */
  readonly where?: string
}

const KEYS = ['accessKeyId', 'secretAccessKey']
const REPOSITORY = ['repo', 'branch', 'token']

/** The places `init` offers: this machine, then by how often people have them. */
export const PLACES: readonly Place[] = [
  {
    label: 'A folder on this machine',
    hint: 'this server hands the files out',
    type: 'local',
    options: { serve: true },
    asks: ['directory'],
  },
  {
    label: 'A folder on this machine that a web server publishes',
    hint: 'nginx, Apache, Caddy',
    type: 'local',
    asks: ['directory', 'urlPrefix'],
  },
  {
    label: 'Cloudflare R2',
    type: 's3',
    options: { preset: 'cloudflare-r2' },
    asks: ['accountId', 'bucket', ...KEYS, 'urlPrefix'],
    where: 'R2 → Manage API tokens, with "Object Read & Write".',
  },
  {
    label: 'Amazon S3',
    type: 's3',
    options: { preset: 'aws' },
    asks: ['bucket', 'region', 'accessKeyId?', 'secretAccessKey?', 'urlPrefix?'],
    where: 'IAM → Users → Security credentials → Create access key.',
  },
  {
    label: 'Aliyun OSS · 阿里云',
    type: 'aliyun',
    asks: ['bucket', 'area', ...KEYS, 'urlPrefix?'],
    where: 'the RAM console: a user with an AccessKey.',
  },
  {
    label: 'Tencent COS · 腾讯云',
    type: 'tcyun',
    asks: ['bucket', 'area', ...KEYS, 'urlPrefix?'],
    where: 'the console, CAM → API keys.',
  },
  {
    label: 'Qiniu Kodo · 七牛云',
    type: 'qiniu',
    asks: ['bucket', 'area', ...KEYS, 'urlPrefix'],
    where: 'the portal, 个人中心 → 密钥管理.',
  },
  {
    label: 'Upyun · 又拍云',
    type: 'upyun',
    asks: ['bucket', 'operator', 'password', 'urlPrefix'],
    where: 'the console, 账户管理 → 操作员.',
  },
  {
    label: 'Another S3 service',
    hint: 'MinIO, Backblaze B2, Wasabi, DigitalOcean, OBS, TOS, GCS, Ceph…',
    type: 's3',
    asks: ['endpoint', 'bucket', 'region?', ...KEYS, 'urlPrefix?'],
  },
  {
    label: 'Azure Blob Storage',
    type: 'azure',
    asks: ['account', 'container', 'accountKey?', 'sasToken?'],
    where: 'the storage account, Security + networking → Access keys. One of key and token is enough.',
  },
  {
    label: 'GitHub',
    hint: 'a public repository',
    type: 'github',
    asks: REPOSITORY,
    where: 'Settings → Developer settings → Personal access tokens, with "Contents: Read and write".',
  },
  {
    label: 'Gitee · 码云',
    hint: 'a public repository',
    type: 'gitee',
    asks: REPOSITORY,
    where: '设置 → 私人令牌, with "projects".',
  },
  {
    label: 'GitLab',
    hint: 'a public project',
    type: 'gitlab',
    asks: REPOSITORY,
    where: 'Preferences → Access tokens, with the scope "api".',
  },
  {
    label: 'Gitea, Forgejo, Codeberg',
    hint: 'a public repository',
    type: 'gitea',
    asks: ['apiUrl', ...REPOSITORY],
    where: 'Settings → Applications, with "write:repository".',
  },
  {
    label: 'WebDAV',
    hint: 'Nextcloud, ownCloud, a NAS',
    type: 'webdav',
    asks: ['url', 'username?', 'password?', 'urlPrefix?'],
  },
  {
    label: 'SFTP',
    hint: 'a server you reach by SSH',
    type: 'sftp',
    asks: ['host', 'username', 'password?', 'privateKeyFile?', 'directory?', 'urlPrefix'],
  },
  {
    label: 'FTP',
    hint: 'web space',
    type: 'ftp',
    asks: ['host', 'username', 'password', 'directory?', 'urlPrefix'],
  },
  {
    label: 'S.EE, formerly SM.MS',
    type: 'smms',
    asks: ['token'],
    where: 'the dashboard, Developers.',
  },
  { label: 'Imgur', type: 'imgur', asks: ['clientId'], where: 'Settings → Applications.' },
  {
    label: 'Lsky Pro · 兰空图床',
    type: 'lsky',
    asks: ['url', 'version', 'token?'],
  },
  {
    label: 'Chevereto, freeimage.host',
    type: 'chevereto',
    asks: ['url', 'apiKey'],
    where: 'Settings → API.',
  },
  { label: 'ImgBB', type: 'imgbb', asks: ['apiKey'], where: 'api.imgbb.com.' },
  { label: 'Catbox', hint: 'needs no account', type: 'catbox', asks: ['userhash?'] },
  {
    label: 'Another upload server, PicGo or PicList',
    type: 'piclist',
    asks: ['url', 'serverKey?'],
  },
  {
    label: 'Any other host',
    hint: 'described by a ShareX .sxcu file, or by options',
    type: 'http',
    asks: ['sxcu?', 'url?'],
  },
]
