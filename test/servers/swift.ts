import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { findFreePorts } from '../helpers/free-port.ts'
import { type Daemon, startDaemon } from './daemon.ts'
import { createS3Admin, type S3Admin, type S3Keys } from './s3-admin.ts'

const run = promisify(execFile)

/** Programs and the Debian packages they are in. */
export const SWIFT_NEEDS = [
  ['swift-proxy-server', 'swift-proxy'],
  ['swift-account-server', 'swift-account'],
  ['swift-container-server', 'swift-container'],
  ['swift-object-server', 'swift-object'],
  ['memcached', 'memcached'],
] as const

/** In the order of their ports, behind the one of the proxy. */
const STORES = ['account', 'container', 'object'] as const

/** What swift-ring-builder does, in one go: Python takes long to start. */
const MAKE_RINGS = `
import sys
from swift.common.ring import RingBuilder
for offset, store in enumerate(sys.argv[3:]):
    ring = RingBuilder(6, 1, 1)
    port = int(sys.argv[2]) + offset
    ring.add_dev(dict(id=0, region=1, zone=1, ip='127.0.0.1', port=port, device='d1', weight=1))
    ring.rebalance()
    ring.get_ring().save(sys.argv[1] + '/' + store + '.ring.gz')
`

export interface Swift {
  readonly port: number
  /** Of the S3 API, path style. */
  readonly url: string
  readonly owner: S3Keys
  readonly admin: S3Admin
  /** Everybody may read its objects, at Swift's own address. */
  createBucket(name: string): Promise<void>
  /** Where visitors find the objects of a bucket: another address than the API's. */
  publicUrl(bucket: string): string
  /**
   * The same store at another port, by a clock of its own.
   *
   * @param clock offset in the words of faketime, `+2h`; needs the Debian package faketime
   */
  startSkewed(clock: string): Promise<{ url: string }>
  close(): Promise<void>
}

/** Starts OpenStack Swift with its S3 API, all on 127.0.0.1. */
export async function startSwift(): Promise<Swift> {
  const home = await mkdtemp(join(tmpdir(), 'upload-server-swift-'))
  const port = await findFreePorts(5)
  const daemons: Daemon[] = []
  const start = async (at: number, program: string, ...args: string[]) => {
    daemons.push(await startDaemon(program, args, { port: at }))
  }
  const close = async () => {
    await Promise.all(daemons.map(daemon => daemon.stop()))
    await rm(home, { recursive: true, force: true })
  }
  try {
    await writeConfiguration(home, port)
    const account = userInfo().uid === 0 ? ['-u', 'nobody'] : []
    await Promise.all([
      start(port + 4, 'memcached', '-l', '127.0.0.1', '-p', String(port + 4), '-m', '32', ...account),
      ...STORES.map((store, i) =>
        start(port + 1 + i, `swift-${store}-server`, join(home, `${store}-server.conf`)),
      ),
      start(port, 'swift-proxy-server', join(home, 'proxy-server.conf')),
    ])
  } catch (error) {
    await close()
    throw error
  }
  const url = `http://127.0.0.1:${port}`
  const owner = { accessKeyId: 'test:tester', secretAccessKey: 'testsecret' }
  const admin = createS3Admin(url, owner)
  return {
    port,
    url,
    owner,
    admin,
    async createBucket(name) {
      await admin.send('PUT', `/${name}`)
      await openToVisitors(url, owner, name)
    },
    publicUrl: bucket => `${url}/v1/AUTH_test/${bucket}`,
    async startSkewed(clock) {
      const at = await findFreePorts()
      const conf = join(home, 'skewed.conf')
      await writeLines(conf, proxyLines(home, at, port + 4))
      await start(at, 'faketime', '-f', clock, 'swift-proxy-server', conf)
      return { url: `http://127.0.0.1:${at}` }
    },
    close,
  }
}

/** By Swift's own means: its S3 API knows no policies. */
async function openToVisitors(url: string, owner: S3Keys, bucket: string): Promise<void> {
  const login = await fetch(`${url}/auth/v1.0`, {
    headers: { 'x-auth-user': owner.accessKeyId, 'x-auth-key': owner.secretAccessKey },
  })
  const response = await fetch(`${url}/v1/AUTH_test/${bucket}`, {
    method: 'POST',
    headers: { 'x-auth-token': login.headers.get('x-auth-token') ?? '', 'x-container-read': '.r:*' },
  })
  if (!response.ok) throw new Error(`opening ${bucket}: ${response.status} ${await response.text()}`)
}

async function writeConfiguration(home: string, port: number): Promise<void> {
  await mkdir(join(home, 'srv/d1'), { recursive: true })
  await mkdir(join(home, 'cache'))
  const hashes = ['[swift-hash]', 'swift_hash_path_suffix = s', 'swift_hash_path_prefix = p']
  const policy = ['[storage-policy:0]', 'name = p0', 'default = yes']
  await writeLines(join(home, 'swift.conf'), [...hashes, ...policy])
  for (const [i, store] of STORES.entries()) await writeStore(home, store, port + 1 + i)
  await run('/usr/bin/python3', ['-c', MAKE_RINGS, home, String(port + 1), ...STORES])
  await writeLines(join(home, 'proxy-server.conf'), proxyLines(home, port, port + 4))
}

async function writeStore(home: string, store: string, port: number): Promise<void> {
  await writeLines(join(home, `${store}-server.conf`), [
    '[DEFAULT]',
    `swift_dir = ${home}`,
    'bind_ip = 127.0.0.1',
    `bind_port = ${port}`,
    `user = ${userInfo().username}`,
    `devices = ${home}/srv`,
    'mount_check = false',
    'disable_fallocate = true',
    'workers = 0',
    'log_level = WARNING',
    `recon_cache_path = ${home}/cache`,
    '[pipeline:main]',
    `pipeline = ${store}-server`,
    `[app:${store}-server]`,
    `use = egg:swift#${store}`,
  ])
}

function proxyLines(home: string, port: number, memcached: number): string[] {
  const filters = [
    'catch_errors',
    'gatekeeper',
    'healthcheck',
    'listing_formats',
    'bulk',
    'tempurl',
    'copy',
    'slo',
    'dlo',
  ]
  return [
    '[DEFAULT]',
    `swift_dir = ${home}`,
    'bind_ip = 127.0.0.1',
    `bind_port = ${port}`,
    `user = ${userInfo().username}`,
    'workers = 0',
    'log_level = WARNING',
    '[pipeline:main]',
    'pipeline = catch_errors gatekeeper healthcheck cache listing_formats bulk tempurl s3api tempauth copy slo dlo versioned_writes proxy-server',
    '[app:proxy-server]',
    'use = egg:swift#proxy',
    'account_autocreate = true',
    'allow_account_management = true',
    '[filter:cache]',
    'use = egg:swift#memcache',
    `memcache_servers = 127.0.0.1:${memcached}`,
    '[filter:s3api]',
    'use = egg:swift#s3api',
    's3_acl = true',
    'location = us-east-1',
    'storage_domain = swift.localhost',
    'min_segment_size = 5242880',
    '[filter:tempauth]',
    'use = egg:swift#tempauth',
    'user_test_tester = testsecret .admin',
    '[filter:versioned_writes]',
    'use = egg:swift#versioned_writes',
    'allow_versioned_writes = true',
    ...filters.flatMap(filter => [`[filter:${filter}]`, `use = egg:swift#${filter}`]),
  ]
}

async function writeLines(path: string, lines: readonly string[]): Promise<void> {
  await writeFile(path, `${lines.join('\n')}\n`)
}
