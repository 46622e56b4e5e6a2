import { mkdir, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { openProvider } from '../../../src/provider-tests/open-provider.ts'
import { loadProvider } from '../../../src/providers/registry.ts'
import { makeDirectory } from '../../helpers/directory.ts'

const url = 'https://img.example.com'
const s3 = {
  bucket: 'b',
  accessKeyId: 'id',
  secretAccessKey: 'secret',
  region: 'eu-central-1',
  urlPrefix: url,
}
const sftp = { host: 'files.example.com', username: 'u', password: 'secret', urlPrefix: url }
const ftp = { ...sftp, secure: 'explicit' }
const webdav = { url: 'https://cloud.example.com/dav', username: 'u', password: 'secret' }
const azure = { account: 'acc', container: 'img', accountKey: `${'A'.repeat(86)}==` }
const github = { repo: 'octo/img', branch: 'main', token: 'secret' }
const upyun = { bucket: 'b', operator: 'o', password: 'secret', urlPrefix: url }
const openlist = { url: 'https://list.example.com', token: 'secret' }

/** The object that a key of a destination is: no two destinations have to be named alike for it. */
async function objectOf([type, options, key]: Named): Promise<string> {
  const provider = await loadProvider(type)
  const target = await openProvider(provider!, options)
  await target.close?.()
  return target.location + key
}

type Named = [type: string, options: Record<string, unknown>, key: string]

it.each<[string, Named, Named]>([
  ['folders of a bucket', ['s3', { ...s3, path: 'a' }, 'b/x'], ['s3', { ...s3, path: '/a/b/' }, 'x']],
  [
    'spellings of an endpoint',
    ['s3', { ...s3, endpoint: 'https://s3.eu-central-1.amazonaws.com' }, 'x'],
    ['s3', { ...s3, endpoint: 'https://S3.eu-central-1.amazonaws.com/', addressingStyle: 'path' }, 'x'],
  ],
  [
    'a preset and its endpoint',
    ['aliyun', { ...s3, region: 'cn-hangzhou' }, 'x'],
    ['s3', { ...s3, endpoint: 'https://oss-cn-hangzhou-internal.aliyuncs.com', region: 'cn-hangzhou' }, 'x'],
  ],
  [
    'names of this machine',
    ['webdav', { ...webdav, url: 'http://127.0.0.1:80/dav/' }, 'x'],
    ['webdav', { ...webdav, url: 'http://localhost/dav' }, 'x'],
  ],
  [
    'an address and a folder below one',
    ['webdav', { ...webdav, url: 'https://cloud.example.com/', directory: 'dav/ü b' }, 'x'],
    ['webdav', { ...webdav, url: 'https://CLOUD.example.com/dav/%C3%BC%20b', username: 'other' }, 'x'],
  ],
  [
    'folders of a server',
    ['sftp', { ...sftp, directory: '/srv//img/' }, 'b/x'],
    ['sftp', { ...sftp, directory: '/srv/img/b', username: 'other', host: 'FILES.example.com' }, 'x'],
  ],
  [
    'folders of a login',
    ['sftp', { ...sftp, directory: './img' }, 'x'],
    ['sftp', { ...sftp, directory: 'img/', port: 22 }, 'x'],
  ],
  [
    'ports of one FTP server',
    ['ftp', { ...ftp, directory: '/img' }, 'x'],
    ['ftp', { ...ftp, directory: '/', secure: 'implicit' }, 'img/x'],
  ],
  [
    'capitals of a repository',
    ['github', { ...github, repo: 'Octo/IMG' }, 'x'],
    ['github', { ...github, token: 'other' }, 'x'],
  ],
  [
    'accesses to a container',
    ['azure', azure, 'x'],
    ['azure', { ...azure, accountKey: undefined, sasToken: 'sv=1&sig=secret' }, 'x'],
  ],
  [
    'networks of Upyun',
    ['upyun', upyun, 'x'],
    ['upyun', { ...upyun, endpoint: 'https://v2.api.upyun.com' }, 'x'],
  ],
  [
    'folders of OpenList',
    ['openlist', { ...openlist, directory: '/a' }, 'b/x'],
    ['openlist', { ...openlist, directory: 'a/b/', token: 'other' }, 'x'],
  ],
])('%s are one place', async (_, one, other) => {
  expect(await objectOf(one)).toBe(await objectOf(other))
})

it.each<[string, Named, Named]>([
  ['buckets', ['s3', s3, 'x'], ['s3', { ...s3, bucket: 'c' }, 'x']],
  ['hosts', ['sftp', { ...sftp, directory: '/a' }, 'x'], ['ftp', { ...ftp, directory: '/a' }, 'x']],
  ['logins whose folders are relative', ['sftp', sftp, 'x'], ['sftp', { ...sftp, username: 'v' }, 'x']],
  ['branches', ['github', { ...github, branch: 'a' }, 'b/x'], ['github', { ...github, branch: 'a/b' }, 'x']],
  ['paths', ['webdav', webdav, 'x'], ['webdav', { ...webdav, url: 'https://cloud.example.com/da' }, 'v/x']],
])('%s are places of their own', async (_, one, other) => {
  expect(await objectOf(one)).not.toBe(await objectOf(other))
})

it('a folder is known by where it really is, also before it is made', async () => {
  const directory = await makeDirectory()
  await mkdir(join(directory, 'real'))
  await symlink(join(directory, 'real'), join(directory, 'link'))
  const at = (path: string, key: string) =>
    objectOf(['local', { directory: join(directory, path), serve: true }, key])
  const object = await at('real/a/b', 'c/x')
  expect(object).toMatch(/^file:\/.*\/real\/a\/b\/c\/x$/)
  for (const [path, key] of [
    ['link/a/b', 'c/x'],
    ['link/a', 'b/c/x'],
    ['link/../real/a/b/c/', 'x'],
    ['', 'real/a/b/c/x'],
  ] as const)
    expect(await at(path, key)).toBe(object)
  expect(await at('reala/b', 'c/x')).not.toBe(object)
})
