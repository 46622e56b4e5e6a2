export type Options = Record<string, unknown>

/** Every uploader of PicGo and PicList with the options that its form requires, filled in. */
export const UPLOADERS: Record<string, Options> = {
  aliyun: { accessKeyId: 'a', accessKeySecret: 's', bucket: 'pics', area: 'oss-cn-beijing' },
  tcyun: { secretId: 'a', secretKey: 's', bucket: 'pics', appId: '125', area: 'ap-nanjing', version: 'v5' },
  qiniu: { accessKey: 'a', secretKey: 's', bucket: 'pics', url: 'https://q.example.com', area: 'z0' },
  upyun: { bucket: 'pics', operator: 'op', password: 's', url: 'https://u.example.com' },
  github: { repo: 'someone/pics', branch: 'main', token: 's', path: 'img/' },
  imgur: { clientId: 's' },
  smms: { token: 's' },
  local: { path: '/srv/pics', customUrl: 'https://l.example.com' },
  webdavplist: { host: 'https://dav.example.com', username: 'me', password: 's' },
  sftpplist: { host: 'sftp.example.com', username: 'me', password: 's', uploadPath: '/srv/img' },
  lskyplist: { version: 'V2', host: 'https://lsky.example.com', token: 's' },
  piclist: { host: '127.0.0.1', port: 36677 },
  'aws-s3': { accessKeyID: 'a', secretAccessKey: 's', bucketName: 'pics', region: 'us-east-1' },
  'aws-s3-plist': {
    accessKeyID: 'a',
    secretAccessKey: 's',
    bucketName: 'pics',
    uploadPath: '{fileName}.{extName}',
    endpoint: 'https://s3.example.com',
  },
  'web-uploader': { url: 'https://w.example.com/upload', paramName: 'file', jsonPath: 'data' },
  advancedplist: { endpoint: 'https://w.example.com/upload', method: 'POST', formDataKey: 'file' },
}
