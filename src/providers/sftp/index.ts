import { readFileSync, statSync } from 'node:fs'
import { decodeText } from '../../decode-text.ts'
import { fileMode, folderMode, localPath, modeOf, ownFile, secret } from '../../options.ts'
import * as z from '../../packages/zod.ts'
import { Problem } from '../../problem.ts'
import { type Context, defineProvider, type OpenTarget } from '../contract.ts'
import { createFileTree, type UseFiles } from '../shared/file-tree.ts'
import { locationAtHost } from '../shared/location.ts'
import { joinUrl } from '../shared/public-url.ts'
import { cleanFolder, hostName, serverFolderOptions } from '../shared/remote-path.ts'
import { findKeyFault } from './authenticate.ts'
import { connect } from './connect.ts'
import { explainStatus } from './explain.ts'
import { createSftpFiles } from './files.ts'
import { createHostKeys } from './host-keys.ts'
import { picgo } from './picgo.ts'
import { createConnection } from './session.ts'

const fingerprint = z.string().regex(/^SHA256:[A-Za-z0-9+/]{43}$/)

const config = z.object({
  host: hostName().describe('Hostname or IP address of the server.'),
  port: z.int().min(1).max(65_535).default(22).describe('Port of the server.'),
  username: z.string().min(1).describe('User name to log in with.'),
  password: secret().optional().describe('Password of the user. Also used for keyboard-interactive login.'),
  privateKey: secret()
    .optional()
    .describe('Private key as text, in OpenSSH, PEM or PuTTY (version 2) format.'),
  privateKeyFile: ownFile().optional().describe('Path of the private key file.'),
  passphrase: secret().optional().describe('Passphrase of the private key.'),
  agent: localPath()
    .optional()
    .describe('Socket path of an SSH agent that holds the private key, usually the value of SSH_AUTH_SOCK.'),
  hostFingerprint: z
    .union([fingerprint, z.array(fingerprint).min(1)], {
      error: 'must be "SHA256:…" as "ssh-keygen -lf" prints it, or a list of such fingerprints',
    })
    .optional()
    .describe(
      'Fingerprint of the host key, or a list of them, as "ssh-keygen -lf" prints them. Default: trust the host key in known_hosts, or else the one seen first.',
    ),
  ...serverFolderOptions,
  fileMode: fileMode().optional().describe('Permissions of stored files. Octal. Default: set by the server.'),
  directoryMode: folderMode()
    .optional()
    .describe('Permissions of created folders. Octal. Default: set by the server.'),
})

type Options = z.output<typeof config>

/** An SFTP server. No command is ever run in a shell there. */
export const sftp = defineProvider({
  type: 'sftp',
  about: {
    family: 'server',
    what: 'SFTP with a password, a private key or an SSH agent',
    testedAgainst: 'OpenSSH and ProFTPD',
    choices: [
      {
        label: 'SFTP',
        hint: 'any server with SSH access',
        asks: ['host', 'port', 'username', 'password?', 'privateKeyFile?', 'directory?', 'urlPrefix'],
      },
    ],
  },
  config,
  validate,
  open,
  picgo,
})

function validate({ password, privateKey, privateKeyFile, passphrase, agent }: Options): string | undefined {
  const hasKey = privateKey !== undefined || privateKeyFile !== undefined
  if (!hasKey && password === undefined && agent === undefined)
    return 'Set "password", "privateKey", "privateKeyFile" or "agent" to log in with.'
  if (privateKey !== undefined && privateKeyFile !== undefined)
    return 'Set "privateKey" or "privateKeyFile", not both.'
  if (passphrase !== undefined && !hasKey) return '"passphrase" needs "privateKey" or "privateKeyFile".'
  const text = privateKey ?? (privateKeyFile === undefined ? undefined : readIfThere(privateKeyFile))
  const fault = text === undefined ? undefined : findKeyFault(text)
  const name = privateKey === undefined ? 'privateKeyFile' : 'privateKey'
  return fault === undefined ? undefined : `"${name}" is not a usable private key. ${fault}`
}

/** A file that can't be read now may be there when the server connects. A pipe can be read once, so it is left for that. */
function readIfThere(path: string): string | undefined {
  try {
    return statSync(path).isFile() ? decodeText(readFileSync(path)) : undefined
  } catch {
    return undefined
  }
}

function open(options: Options, { name, warn, knownHosts, dial }: Context): OpenTarget {
  const { host, port, atomic } = options
  const server = `"sftp/${name}" (${host}, port ${port})`
  const directory = cleanFolder(options.directory)
  const pinned = [options.hostFingerprint ?? []].flat()
  const hostKeys = createHostKeys({ host, port, pinned, files: knownHosts, server, warn })
  const connection = createConnection(signal => connect({ ...options, server, dial }, hostKeys, signal))
  const [fileMode, directoryMode] = [options.fileMode, options.directoryMode].map(mode =>
    mode === undefined ? undefined : modeOf(mode),
  )
  const use: UseFiles = async work =>
    work(createSftpFiles(await connection.get(), { fileMode, directoryMode }))

  return {
    ...createFileTree(use, {
      directory,
      atomic,
      explain: error => explainStatus(error, server),
      urlOf: key => joinUrl(options.urlPrefix, key),
      disconnect: connection.close,
    }),
    location: locationAtHost('sftp', options, directory),
    async findUnknownHost(signal) {
      let found: Buffer | undefined
      const judge = async (key: Buffer): Promise<never> => {
        if ((await hostKeys.judge(key)) === 'unknown') found = key
        throw new Problem(`${server}: only the host key was read`)
      }
      await connect({ ...options, server, dial }, { ...hostKeys, judge }, signal).catch(() => {})
      const key = found
      return key && { shown: hostKeys.describe(key), trust: () => hostKeys.trust(key) }
    },
  }
}
