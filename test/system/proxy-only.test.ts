import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createReadStream, readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { makeDirectory } from '../helpers/directory.ts'
import { needs, needsRoot } from '../helpers/needs.ts'
import { type ProgramResult, runProgram } from '../helpers/run-program.ts'
import { BIN } from '../helpers/spawn-server.ts'
import { startFarHosts } from '../servers/far-hosts.ts'
import { PASSIVE_PORTS } from '../servers/ftp-server.ts'
import { NGINX_DAV_NEEDS, startNginxDav } from '../servers/nginx-dav.ts'
import { OPENSSH_NEEDS, startOpenSsh } from '../servers/openssh.ts'
import { startMicrosocks, startTinyproxy } from '../servers/proxies.ts'
import { startProxy } from '../servers/proxy.ts'
import { startVsftpd, VSFTPD_NEEDS } from '../servers/vsftpd.ts'
import { startWebFolder } from '../servers/web-folder.ts'
import { serve } from '../uploader/sources/servers.ts'

const NEEDS = [
  ['ip', 'iproute2'],
  ['curl', 'curl'],
  ['tinyproxy', 'tinyproxy'],
  ['microsocks', 'microsocks'],
  ...OPENSSH_NEEDS,
  ...VSFTPD_NEEDS,
  ...NGINX_DAV_NEEDS,
] as const

interface Inside {
  /** Where a proxy has to listen to be reached from inside. */
  readonly gateway: string
  /** An address of this machine to which no way leads from inside. */
  readonly far: string
  run(env: Record<string, string>, program: string, ...args: string[]): Promise<ProgramResult>
  /** Runs a program until the test is over. */
  start(program: string, ...args: string[]): void
}

/** A namespace whose network reaches from one end of a cable to the other, and not further. */
async function makeNamespace(cwd: string): Promise<Inside> {
  const id = process.pid % 60_000
  const [space, cable, plug] = [`upload-p${id}`, `up${id}`, `uq${id}`]
  const net = `10.214.${process.pid % 256}`
  const [gateway, inner, far] = [`${net}.1`, `${net}.2`, `10.215.${process.pid % 256}.1`]
  const ip = (...args: string[]) => void execFileSync('ip', args, { stdio: 'pipe' })
  ip('netns', 'add', space)
  onTestFinished(() => {
    ip('netns', 'del', space)
    ip('addr', 'del', `${far}/32`, 'dev', 'lo')
  })
  ip('link', 'add', cable, 'type', 'veth', 'peer', 'name', plug, 'netns', space)
  ip('addr', 'add', `${gateway}/30`, 'dev', cable)
  ip('addr', 'add', `${far}/32`, 'dev', 'lo')
  ip('link', 'set', cable, 'up')
  ip('-n', space, 'addr', 'add', `${inner}/30`, 'dev', plug)
  ip('-n', space, 'link', 'set', plug, 'up')
  ip('-n', space, 'link', 'set', 'lo', 'up')
  const inside = (program: string, args: string[]) => ['netns', 'exec', space, program, ...args]
  return {
    gateway,
    far,
    run: (env, program, ...args) => runProgram('ip', inside(program, args), { cwd, env }),
    start(program, ...args) {
      const env = { PATH: process.env['PATH'], HOME: cwd }
      const child = spawn('ip', inside(program, args), { cwd, env, stdio: 'ignore' })
      onTestFinished(async () => {
        child.kill('SIGKILL')
        await once(child, 'close')
      })
    },
  }
}

/** Servers of every protocol, at an address to which no way leads, and what a configuration says of them. */
async function startServers(far: string, folder: string) {
  const [dav, ssh, ftp, hosts] = await Promise.all([
    startNginxDav(),
    startOpenSsh(),
    startVsftpd('implicit'),
    startFarHosts(far, folder),
  ])
  const webs = await Promise.all([startWebFolder(ssh.directory), startWebFolder(ftp.directory)])
  const away = (url: string) => url.replace('127.0.0.1', far)
  const passive = Array.from({ length: PASSIVE_PORTS }, (_, i) => ftp.passivePort + i)
  const ports = [dav.url, ...webs.map(web => web.url)].map(url => Number(new URL(url).port))
  const front = await startProxy([...ports, ...hosts.ports, ssh.port, ftp.port, ...passive], far)
  onTestFinished(async () => {
    for (const web of webs) web.close()
    await Promise.all([front.close(), hosts.close(), dav.close(), ssh.close(), ftp.close()])
  })
  const [sshWeb, ftpWeb] = webs.map(web => away(web.url))
  const login = { username: ftp.username, password: ftp.password, insecureTls: true }
  const providers: typeof hosts.providers = {
    ...hosts.providers,
    webdav: {
      Default: {
        url: away(dav.url),
        username: dav.username,
        password: dav.password,
        urlPrefix: away(dav.url),
      },
    },
    sftp: {
      Default: {
        ...{
          host: far,
          port: ssh.port,
          username: ssh.username,
          privateKeyFile: ssh.keyFile,
          urlPrefix: sshWeb,
        },
        hostFingerprint: ssh.fingerprint,
      },
    },
    ftp: {
      Default: {
        ...login,
        host: far,
        port: ftp.port,
        secure: 'implicit',
        directory: ftp.folder,
        urlPrefix: ftpWeb,
      },
    },
  }
  return { ...hosts, providers }
}

/** What is in the working directory counts only when it is named. */
const CONFIG = ['--config', 'upload-server.json']

it.for(['http', 'socks5'] as const)(
  'where the only way out is a proxy by %s, every kind of destination, source and webhook takes it, and nothing goes past it',
  { timeout: 90_000 },
  async (protocol, context) => {
    for (const [program, debianPackage] of NEEDS) needs(context, program, debianPackage)
    needsRoot(context, 'it makes network namespaces')
    const cwd = await makeDirectory()
    const inside = await makeNamespace(cwd)
    const { gateway, far } = inside
    const { providers, plugins, env, url, certFile, files } = await startServers(far, cwd)
    const ids = Object.entries(providers).flatMap(([type, all]) =>
      Object.keys(all).map(name => `${type}/${name}`),
    )
    const way = await (protocol === 'http'
      ? startTinyproxy(cwd, { address: gateway })
      : startMicrosocks({ address: gateway }))
    onTestFinished(() => way.stop())
    const proxy = `${protocol}://${way.host}`
    const webhook = { name: 'tell', webhook: `${url}/told` }
    const write = (proxy: string) =>
      writeFile(
        join(cwd, 'upload-server.json'),
        JSON.stringify({
          ...{ providers, plugins, default: 'http/Default', network: { proxy, caFile: certFile } },
          sources: { url: { proxy } },
          finalization: { hooks: [webhook] },
        }),
      )

    await write('none')
    const lost = await inside.run(env, process.execPath, BIN, 'check', ...CONFIG)
    const linesOf = ({ stdout }: ProgramResult) =>
      stdout.split('\n').filter(line => /^(?:ok|FAILED) /.test(line))
    expect(linesOf(lost)).toEqual(
      ids.map(id =>
        expect.stringMatching(new RegExp(`^FAILED  ${id}: .*(?:no route to it|ENETUNREACH|exit code 7)`)),
      ),
    )

    await write(proxy)
    const found = await inside.run(env, process.execPath, BIN, 'check', ...CONFIG)
    expect(linesOf(found)).toEqual(
      ids.map(id =>
        expect.stringMatching(new RegExp(`^ok {6}${id}: stored.* through the proxy ${way.host}$`)),
      ),
    )

    inside.start(process.execPath, BIN, '--port', '36677', ...CONFIG)
    const { port } = await serve((_, response) => createReadStream(BIN).pipe(response))
    const front = await startProxy([port], far)
    onTestFinished(() => front.close())
    const list = JSON.stringify({ list: [`http://${far}:${port}/a.js`] })
    const retry = ['-sS', '--retry-connrefused', '--retry', '20', '--retry-delay', '1']
    const { stdout } = await inside.run({}, 'curl', ...retry, '-d', list, 'http://127.0.0.1:36677/upload')
    expect(JSON.parse(stdout)).toMatchObject({ success: true, items: [{ size: readFileSync(BIN).length }] })
    expect(String(files.get('/told'))).toContain(JSON.parse(stdout).result[0])

    const trust = { https_proxy: proxy, NODE_EXTRA_CA_CERTS: certFile }
    const sent = await inside.run(trust, process.execPath, BIN, 'upload', '--server', url, BIN)
    const [link = ''] = sent.stdout.split('\n')
    expect(files.get(new URL(link).pathname)).toEqual(readFileSync(BIN))
  },
)
