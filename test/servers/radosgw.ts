import { execFile } from 'node:child_process'
import { randomBytes, randomUUID } from 'node:crypto'
import { appendFile, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { findFreePorts } from '../helpers/free-port.ts'
import { makeCertificate } from './certificate.ts'
import { readConfiguration } from './configuration.ts'
import { type Daemon, startDaemon } from './daemon.ts'
import { createS3Admin, type S3Admin, type S3Keys } from './s3-admin.ts'

const run = promisify(execFile)

/** Programs and the Debian packages they are in. */
export const RADOSGW_NEEDS = [
  ['radosgw', 'radosgw'],
  ['ceph-mon', 'ceph-mon'],
  ['ceph-osd', 'ceph-osd'],
  ['ceph', 'ceph-common'],
  ['openssl', 'openssl'],
] as const

export interface Radosgw {
  readonly port: number
  /** Path style; the names `BUCKET.s3.localhost` have to be led to 127.0.0.1 by whoever uses them. */
  readonly url: string
  readonly tlsUrl: string
  readonly tlsPort: number
  /** The certificate signs itself, for 127.0.0.1 and everything below `s3.localhost`. */
  readonly caFile: string
  /** Owns all buckets. */
  readonly owner: S3Keys
  /** May read what everybody may, and write nowhere. */
  readonly stranger: S3Keys
  readonly admin: S3Admin
  /** Everybody may read its objects unless it is private. */
  createBucket(name: string, options?: { isPrivate?: boolean }): Promise<void>
  /** What a user of that name may store in all, in bytes. */
  setQuota(bytes: number): Promise<void>
  close(): Promise<void>
}

/** Starts Ceph's S3 gateway with a monitor and a store in memory, all on 127.0.0.1. */
export async function startRadosgw(): Promise<Radosgw> {
  const home = await mkdtemp(join(tmpdir(), 'upload-server-rgw-'))
  const first = await findFreePorts(3)
  const [port, tlsPort, monPort] = [first, first + 1, first + 2]
  const daemons: Daemon[] = []
  const close = async () => {
    await Promise.all(daemons.map(daemon => daemon.stop()))
    await rm(home, { recursive: true, force: true })
  }
  try {
    const conf = await writeConfiguration(home, { port, tlsPort, monPort })
    const start = async (program: string, args: string[], at: number) => {
      daemons.push(await startDaemon(program, ['-c', conf, ...args, '-f'], { port: at }))
    }
    await run('ceph-mon', ['-c', conf, '--mkfs', '-i', 'a', ...monFiles(home)])
    await start('ceph-mon', ['-i', 'a'], monPort)
    const osd = randomUUID()
    await run('ceph', ['-c', conf, 'osd', 'new', osd], { timeout: 20_000 })
    await run('ceph-osd', ['-c', conf, '-i', '0', '--mkfs', '--osd-uuid', osd])
    daemons.push(await startOsd(conf))
    await start('radosgw', ['-n', 'client.rgw'], port)
    const administer = (...args: string[]) => run('radosgw-admin', ['-c', conf, '-n', 'client.rgw', ...args])
    const owner = await createUser(administer, 'owner')
    const stranger = await createUser(administer, 'stranger')
    const url = `http://127.0.0.1:${port}`
    const admin = createS3Admin(url, owner)
    return {
      port,
      url,
      tlsPort,
      tlsUrl: `https://127.0.0.1:${tlsPort}`,
      caFile: join(home, 'cert.pem'),
      owner,
      stranger,
      admin,
      async createBucket(name, { isPrivate = false } = {}) {
        await admin.send('PUT', `/${name}`)
        if (!isPrivate) await admin.send('PUT', `/${name}?policy=`, publicPolicy(name))
      },
      async setQuota(bytes) {
        await administer('quota', 'set', '--quota-scope=user', '--uid=owner', `--max-size=${bytes}`)
        await administer('quota', bytes < 0 ? 'disable' : 'enable', '--quota-scope=user', '--uid=owner')
      },
      close,
    }
  } catch (error) {
    await close()
    throw error
  }
}

/** An OSD takes the first free ports of a range: it is there when somebody listens on the first of them. */
async function startOsd(conf: string): Promise<Daemon> {
  const port = await findFreePorts()
  await appendFile(conf, `[osd.0]\nms bind port min = ${port}\nms bind port max = ${port + 40}\n`)
  return startDaemon('ceph-osd', ['-c', conf, '-i', '0', '-f'], { port })
}

function monFiles(home: string): string[] {
  return ['--monmap', join(home, 'monmap'), '--keyring', join(home, 'keyring')]
}

async function createUser(administer: (...args: string[]) => Promise<unknown>, uid: string): Promise<S3Keys> {
  const accessKeyId = `KEY${randomBytes(6).toString('hex').toUpperCase()}`
  const secretAccessKey = randomBytes(20).toString('hex')
  const keys = [`--access-key=${accessKeyId}`, `--secret-key=${secretAccessKey}`]
  for (let attempt = 0; ; attempt++) {
    try {
      await administer('user', 'create', `--uid=${uid}`, `--display-name=${uid}`, ...keys)
      return { accessKeyId, secretAccessKey }
    } catch (error) {
      if (attempt === 5) throw error
      await sleep(200)
    }
  }
}

function publicPolicy(bucket: string): string {
  const Statement = [
    { Effect: 'Allow', Principal: '*', Action: 's3:GetObject', Resource: `arn:aws:s3:::${bucket}/*` },
  ]
  return JSON.stringify({ Version: '2012-10-17', Statement })
}

interface Ports {
  readonly port: number
  readonly tlsPort: number
  readonly monPort: number
}

/** Keys, the monitor's map, a certificate, and the file that names them all. */
async function writeConfiguration(home: string, { port, tlsPort, monPort }: Ports): Promise<string> {
  const [keyring, monmap, conf] = [join(home, 'keyring'), join(home, 'monmap'), join(home, 'ceph.conf')]
  const fsid = randomUUID()
  await Promise.all(['mon', 'osd', 'run'].map(folder => mkdir(join(home, folder))))
  const { certFile, keyFile } = makeCertificate(home, 'IP:127.0.0.1,DNS:s3.localhost,DNS:*.s3.localhost')
  const both = join(home, 'both.pem')
  await writeFile(both, (await readFile(certFile, 'utf8')) + (await readFile(keyFile, 'utf8')), {
    mode: 0o600,
  })
  const all = ['--cap', 'mon', 'allow *', '--cap', 'osd', 'allow *', '--cap', 'mgr', 'allow *']
  const gateway = ['--cap', 'mon', 'allow rw', '--cap', 'osd', 'allow rwx']
  const store = ['--cap', 'mon', 'allow profile osd', '--cap', 'osd', 'allow *']
  await run('ceph-authtool', [
    '--create-keyring',
    keyring,
    '--gen-key',
    '-n',
    'mon.',
    '--cap',
    'mon',
    'allow *',
  ])
  await run('ceph-authtool', [keyring, '--gen-key', '-n', 'client.admin', ...all])
  await run('ceph-authtool', [keyring, '--gen-key', '-n', 'client.rgw', ...gateway])
  await run('ceph-authtool', [keyring, '--gen-key', '-n', 'osd.0', ...store])
  await run('monmaptool', ['--create', '--addv', 'a', `[v2:127.0.0.1:${monPort}]`, '--fsid', fsid, monmap])
  await writeFile(conf, readConfiguration('ceph', { home, fsid, both, port, tlsPort, monPort }))
  return conf
}
