import { httpOptions } from '../../http/client.ts'
import { DIRECT } from '../../http/proxy/outgoing.ts'
import { secret } from '../../options.ts'
import * as z from '../../packages/zod.ts'
import { defineProvider, type ProviderDeps, type Target } from '../contract.ts'
import { createBackground } from '../shared/background.ts'
import { joinUrl, urlPrefix } from '../shared/public-url.ts'
import { hostName, joinRemote, remoteFolder, resolveKey } from '../shared/remote-path.ts'
import { connect, type FtpConnection } from './connect.ts'
import { createExplain } from './explain.ts'
import { fileExists, removeFile } from './files.ts'
import { createPool } from './pool.ts'
import { createFtpUploads } from './uploads.ts'

const config = z.object({
  host: hostName().describe('Name or address of the server.'),
  port: z
    .int()
    .min(1)
    .max(65_535)
    .optional()
    .describe('Port of the server. Default: 21, for implicit TLS 990.'),
  secure: z
    .enum(['explicit', 'implicit', 'none'])
    .default('explicit')
    .describe(
      'TLS by AUTH TLS, TLS from the first byte, or none: then everybody on the way sees the password.',
    ),
  username: z.string().min(1).describe('User to log in as.'),
  password: secret().describe('Password of the user.'),
  directory: remoteFolder()
    .default('')
    .describe('Folder on the server, from where a login starts or from "/". It is made when it is missing.'),
  urlPrefix: urlPrefix().describe('Address at which a web server hands the folder out.'),
  connections: z
    .int()
    .min(1)
    .max(16)
    .default(4)
    .describe(
      'Most connections at once. Each stores one file at a time, and servers limit them for each user.',
    ),
  ...httpOptions,
})

/** A server that speaks FTP, with TLS unless told otherwise. Data connections are passive. */
export const ftp = defineProvider({
  type: 'ftp',
  about: {
    family: 'server',
    what: 'FTP with explicit, implicit or no TLS',
    testedAgainst: 'ProFTPD and vsftpd',
    example: {
      hosting: {
        host: 'ftp.example.com',
        username: 'web123',
        password: 'FTP_PASSWORD',
        directory: 'httpdocs/img',
        urlPrefix: 'https://www.example.com/img',
      },
      nas: {
        host: '192.168.1.10',
        secure: 'implicit',
        username: 'me',
        password: 'NAS_PASSWORD',
        caFile: 'nas.pem',
        directory: '/web/img',
        urlPrefix: 'http://192.168.1.10/img',
        connections: 2,
      },
    },
    choices: [
      {
        label: 'FTP',
        hint: 'web space',
        asks: ['host', 'port?', 'username', 'password', 'directory?', 'urlPrefix'],
      },
    ],
  },
  config,
  open,
})

function open(options: z.output<typeof config>, { name, warn, outgoing = DIRECT }: ProviderDeps): Target {
  const server = `"ftp/${name}" (${options.host})`
  if (options.secure === 'none') warn(`${server}: the password and the files are sent without TLS.`)
  else if (options.insecureTls)
    warn(`${server}: "insecureTls" accepts any certificate; use "caFile" instead.`)
  const explain = createExplain(server, options.password)
  const pool = createPool(options.connections, signal =>
    connect(options, { server, explain, outgoing }, signal),
  )
  const uploads = createFtpUploads()
  const background = createBackground()

  async function use<T>(
    what: string,
    signal: AbortSignal,
    work: (connection: FtpConnection) => Promise<T>,
  ): Promise<T> {
    try {
      return await pool.use(work, signal)
    } catch (error) {
      throw signal.aborted ? signal.reason : explain(error, what)
    } finally {
      if (uploads.isUntidy()) void tidy()
    }
  }

  async function tidy(): Promise<void> {
    const { signal } = new AbortController()
    await background.run(() => pool.use(uploads.tidy, signal), signal).catch(() => {})
  }

  return {
    async put(object, signal) {
      const { path } = resolveKey('', object.key)
      const work = (connection: FtpConnection) => uploads.put(connection, object, path, signal)
      await background.run(() => use(`Storing "${object.key}"`, signal, work), signal)
      return { url: joinUrl(options.urlPrefix, object.key) }
    },
    check: signal => background.run(() => use('Storing a probe file', signal, uploads.probe), signal),
    async exists(key, signal) {
      const { path } = resolveKey('', key)
      return use(`Looking for "${key}"`, signal, ({ client, directory }) =>
        fileExists(client, joinRemote(directory, path)),
      )
    },
    async remove(key, signal) {
      const { path } = resolveKey('', key)
      await use(`Removing "${key}"`, signal, ({ client, directory }) =>
        removeFile(client, joinRemote(directory, path)),
      )
    },
    async close() {
      await background.settle()
      pool.close()
    },
  }
}
