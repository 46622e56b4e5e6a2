import { readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { type AddressInfo, connect } from 'node:net'
import { join } from 'node:path'
import { createServer } from 'node:tls'
import { findFreePorts } from '../helpers/free-port.ts'
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
): Promise<{ host: string; caFile: string; close(): void }> {
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
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return {
    host: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    caFile: certFile,
    close: () => void server.close(),
  }
}
