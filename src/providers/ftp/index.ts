import { secret } from '../../options.ts'
import * as z from '../../packages/zod.ts'
import { type Context, defineProvider, type Target } from '../contract.ts'
import { createFileTree } from '../shared/file-tree.ts'
import { locationAtHost } from '../shared/location.ts'
import { joinUrl } from '../shared/public-url.ts'
import { cleanFolder, hostName, serverFolderOptions } from '../shared/remote-path.ts'
import { connect } from './connect.ts'
import { explainFtp } from './explain.ts'
import { createFtpFiles } from './files.ts'
import { createPool } from './pool.ts'

const config = z.object({
  host: hostName().describe('Hostname or IP address of the server.'),
  port: z
    .int()
    .min(1)
    .max(65_535)
    .optional()
    .describe('Port of the server. Default: 21, or 990 with implicit TLS.'),
  secure: z
    .enum(['explicit', 'implicit', 'none'])
    .default('explicit')
    .describe(
      'TLS mode. "explicit": TLS by AUTH TLS. "implicit": TLS from the first byte. "none": no TLS, so the password is sent in plain text.',
    ),
  username: z.string().min(1).describe('User name to log in with.'),
  password: secret().describe('Password of the user.'),
  ...serverFolderOptions,
  connections: z
    .int()
    .min(1)
    .max(16)
    .default(4)
    .describe('Maximum number of simultaneous connections, one file each. FTP servers limit them per user.'),
})

/** An FTP server, by default with TLS. Data connections are passive. */
export const ftp = defineProvider({
  type: 'ftp',
  about: {
    family: 'server',
    what: 'FTP, with explicit or implicit TLS (FTPS) or without TLS',
    testedAgainst: 'ProFTPD and vsftpd',
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

function open(options: z.output<typeof config>, context: Context): Target {
  const { name, warn, mask } = context
  const { host, atomic } = options
  if (options.secure === 'none')
    warn(
      `"ftp/${name}" (${host}): the password and the files are sent in plain text, without TLS. Set "secure" to "explicit" or "implicit" if the server supports it.`,
    )
  const explain = (error: unknown, isStoring = false) => explainFtp(error, host, mask, isStoring && atomic)
  const pool = createPool(options.connections, signal => connect(options, context, explain, signal))
  // The port of implicit TLS serves the same files.
  const port = options.port === undefined || options.port === 990 ? 21 : options.port
  const directory = cleanFolder(options.directory)
  return {
    ...createFileTree((work, signal) => pool.use(connection => work(createFtpFiles(connection)), signal), {
      directory,
      atomic,
      explain,
      urlOf: key => joinUrl(options.urlPrefix, key),
      disconnect: pool.close,
    }),
    location: locationAtHost('ftp', { ...options, port }, directory),
  }
}
