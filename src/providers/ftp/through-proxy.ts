import type { Socket } from 'node:net'
import { type ConnectionOptions, connect as connectTls, TLSSocket } from 'node:tls'
import type { Client } from 'basic-ftp'
import { UploadError } from '../../errors.ts'

/** Connects to a port of the server. */
export type DialPort = (port: number, signal: AbortSignal) => Promise<Socket>

type FtpContext = Client['ftp']

/**
 * Gives a client a control connection that is already open, and a function that opens data connections to the same server.
 * basic-ftp itself would connect to the remote address of the control connection, which is that of the proxy.
 *
 * @param tls TLS options, if the server uses implicit TLS
 */
export async function connectOver(
  { ftp }: Client,
  socket: Socket,
  tls: ConnectionOptions | undefined,
): Promise<void> {
  ftp.socket = tls ? connectTls({ ...tls, socket }) : socket
  if (tls) ftp.tlsOptions = tls
  await ftp.handle(undefined, (reply, task) => {
    if (reply instanceof Error) task.reject(reply)
    else task.resolve(reply)
  })
}

/** Opens a passive data connection with `dial`. */
export function prepareTransfer(dial: DialPort): Client['prepareTransfer'] {
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
  const [, high, low] = /\((?:\d{1,3},){4}(\d{1,3}),(\d{1,3})\)/.exec(reply.message) ?? []
  const port = extended === undefined ? Number(high) * 256 + Number(low) : Number(extended)
  if (port > 0 && port < 65_536) return { reply, port }
  throw new UploadError(
    'delivery_failed',
    'The server does not offer passive mode. Allow passive mode there: active mode is not supported.',
  )
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
