import type { Socket } from 'node:net'
import { connect as connectTls, TLSSocket } from 'node:tls'
import type { Client } from 'basic-ftp'
import { Problem } from '../../problem.ts'

type FtpContext = Client['ftp']

/**
 * Opens passive data connections with `dial`, to the machine of the control connection. Servers behind NAT report another IP
 * address, and a foreign one may be an attack (FTP bounce).
 */
export function prepareTransfer(
  dial: (port: number, signal: AbortSignal) => Promise<Socket>,
): Client['prepareTransfer'] {
  return async ftp => {
    const { reply, port } = await askPort(ftp)
    const socket = await whileOpen(ftp, signal => dial(port, signal))
    // Some servers require the TLS session of the control connection.
    const session =
      ftp.tlsSessionStore ?? (ftp.socket instanceof TLSSocket ? ftp.socket.getSession() : undefined)
    const isSecure = ftp.socket instanceof TLSSocket
    ftp.dataSocket = isSecure
      ? connectTls({ ...ftp.tlsOptions, socket, ...(session && { session }) })
      : socket
    return reply
  }
}

async function askPort(ftp: FtpContext) {
  const reply = await ftp.request('EPSV').catch(() => ftp.request('PASV'))
  const [, extended] = /\(\|\|\|(\d{1,5})\|\)/.exec(reply.message) ?? []
  const [, high, low] = /\b(?:\d{1,3},){4}(\d{1,3}),(\d{1,3})\b/.exec(reply.message) ?? []
  const port = extended === undefined ? Number(high) * 256 + Number(low) : Number(extended)
  if (port > 0 && port < 65_536) return { reply, port }
  throw new Problem('the server does not offer passive mode', {
    advice: 'Allow passive mode there: active mode is not supported.',
  })
}

/** Aborts work when the control connection ends. */
async function whileOpen<T>({ socket }: FtpContext, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const gone = new AbortController()
  const onClose = () => gone.abort(new Error('the connection was closed'))
  socket.once('close', onClose)
  try {
    return await work(gone.signal)
  } finally {
    socket.removeListener('close', onClose)
  }
}
