import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { chmod, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { createServer } from 'node:tls'
import { findFreePorts } from '../helpers/free-port.ts'
import { listen } from '../helpers/listen.ts'
import { makeCertificate } from './certificate.ts'
import { startDaemon } from './daemon.ts'

/** A real proxy for outgoing connections. */
export interface OutgoingProxy {
  /** `host:port`. */
  readonly host: string
  /** What it has logged: a line for each connection that it was asked for. */
  log(): string
  /** How often it was asked for a tunnel. */
  tunnels(): number
  stop(): Promise<void>
}

export interface ProxyWish {
  /** `user password`; default: it lets everybody in. */
  readonly login?: readonly [user: string, password: string]
  /** Where it listens. Default 127.0.0.1. */
  readonly address?: string
}

/** tinyproxy, for HTTP. @param folder for its configuration */
export async function startTinyproxy(
  folder: string,
  { login, address }: ProxyWish = {},
): Promise<OutgoingProxy> {
  const port = await findFreePorts(1)
  const file = join(folder, `tinyproxy-${port}.conf`)
  const lines = [
    ...[`Port ${port}`, 'Timeout 60', 'MaxClients 50', 'LogLevel Connect', 'Listen 127.0.0.1'],
    ...(address ? [`Listen ${address}`] : []),
    ...(login ? [`BasicAuth ${login.join(' ')}`] : []),
  ]
  await writeFile(file, `${lines.join('\n')}\n`)
  const daemon = await startDaemon('tinyproxy', ['-d', '-c', file], { port })
  return {
    host: `${address ?? '127.0.0.1'}:${port}`,
    log: daemon.output,
    tunnels: () => daemon.output().split('): CONNECT ').length - 1,
    stop: daemon.stop,
  }
}

export const SQUID = '/usr/sbin/squid'

/**
 * Squid, for HTTP, as most companies have it: with a login, and CONNECT to few ports only.
 *
 * @param folder for its configuration and its logs
 * @param ports to which CONNECT is let pass
 */
export async function startSquid(
  folder: string,
  { login, ports }: { login: readonly [user: string, password: string]; ports: readonly number[] },
): Promise<OutgoingProxy> {
  const port = await findFreePorts(1)
  const file = (name: string) => join(folder, name)
  const hashed = execFileSync('openssl', ['passwd', '-apr1', '-stdin'], { input: login[1], encoding: 'utf8' })
  await writeFile(file('users'), `${login[0]}:${hashed}`)
  const lines = [
    ...[`http_port 127.0.0.1:${port}`, 'cache deny all', 'pid_filename none', 'shutdown_lifetime 0 seconds'],
    ...[`access_log stdio:${file('access')}`, `cache_log ${file('log')}`, 'visible_hostname squid.example'],
    `auth_param basic program /usr/lib/squid/basic_ncsa_auth ${file('users')}`,
    ...['acl known proxy_auth REQUIRED', `acl tunnels port ${ports.join(' ')}`],
    ...['http_access deny !known', 'http_access deny CONNECT !tunnels', 'http_access allow all'],
  ]
  await writeFile(file('squid.conf'), `${lines.join('\n')}\n`)
  // As root it would become somebody who may not enter the folder.
  await chmod(folder, 0o777)
  const account = { uid: 65534, gid: 65534 }
  const daemon = await startDaemon(SQUID, ['-N', '-f', file('squid.conf')], {
    port,
    ...(userInfo().uid === 0 && { account }),
  })
  const log = () => readFileSync(file('access'), 'utf8')
  const tunnels = () =>
    log()
      .split('/200')
      .filter(line => line.includes(' CONNECT ')).length
  return { host: `127.0.0.1:${port}`, log, tunnels, stop: daemon.stop }
}

/** microsocks, for SOCKS5. */
export async function startMicrosocks({ login, address }: ProxyWish = {}): Promise<OutgoingProxy> {
  const port = await findFreePorts(1)
  const allow = login ? ['-u', login[0], '-P', login[1]] : []
  const listen = address ? '0.0.0.0' : '127.0.0.1'
  const daemon = await startDaemon('microsocks', ['-i', listen, '-p', String(port), ...allow], {
    port,
  })
  return {
    host: `${address ?? '127.0.0.1'}:${port}`,
    log: daemon.output,
    tunnels: () => daemon.output().split(': connected to ').length - 1,
    stop: daemon.stop,
  }
}

/** TLS in front of a proxy. Needs openssl. */
export async function startTlsFront(
  folder: string,
  host: string,
): Promise<{ host: string; caFile: string; close(): Promise<void> }> {
  const { certFile, keyFile } = makeCertificate(folder)
  const port = Number(host.slice(host.lastIndexOf(':') + 1))
  const server = createServer({ cert: readFileSync(certFile), key: readFileSync(keyFile) }, client => {
    const upstream = connect(port, '127.0.0.1')
    for (const socket of [client, upstream])
      socket
        .on('error', () => {})
        .on('close', () => {
          client.destroy()
          upstream.destroy()
        })
    client.pipe(upstream).pipe(client)
  })
  const { port: front, close } = await listen(server)
  return { host: `127.0.0.1:${front}`, caFile: certFile, close }
}
