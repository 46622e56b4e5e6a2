import { UploadError } from '../../errors.ts'
import { DIRECT } from '../../http/proxy/outgoing.ts'
import { localPath, ownFile, secret } from '../../options.ts'
import * as z from '../../packages/zod.ts'
import { defineProvider, type ProviderDeps, type Target } from '../contract.ts'
import { createBackground } from '../shared/background.ts'
import { joinUrl, urlPrefix } from '../shared/public-url.ts'
import { cleanFolder, hostName, remoteFolder, resolveKey } from '../shared/remote-path.ts'
import { connect } from './connect.ts'
import { explainStatus } from './explain.ts'
import { createRemoteFolders, findFile, removeFile } from './files.ts'
import { createHostKeys } from './host-keys.ts'
import { fromPicGo } from './picgo.ts'
import { createConnection, type SftpSession } from './session.ts'
import { createSftpUploads } from './uploads.ts'

const fingerprint = z.string().regex(/^SHA256:[A-Za-z0-9+/]{43}$/)

const config = z.object({
  host: hostName().describe('Name or address of the server.'),
  port: z.int().min(1).max(65_535).default(22).describe('Port of the server.'),
  username: z.string().min(1).describe('User to log in as.'),
  password: secret()
    .optional()
    .describe('Password of the user, also for servers that ask questions (keyboard-interactive).'),
  privateKey: secret().optional().describe('Private key as text, in the format of OpenSSH, PEM or PuTTY.'),
  privateKeyFile: ownFile().optional().describe('File with the private key.'),
  passphrase: secret().optional().describe('Passphrase of the private key.'),
  agent: localPath()
    .optional()
    .describe('Socket of an SSH agent that holds the key, usually the value of SSH_AUTH_SOCK.'),
  hostFingerprint: z
    .union([fingerprint, z.array(fingerprint).min(1)], {
      error: 'must be "SHA256:…" as "ssh-keygen -lf" prints it, or a list of such fingerprints',
    })
    .optional()
    .describe(
      'The host key, or several, as "ssh-keygen -lf" prints them. Without it a known one is trusted, else the first.',
    ),
  directory: remoteFolder()
    .default('')
    .describe('Folder on the server, from where a login starts or from "/". It is made when it is missing.'),
  urlPrefix: urlPrefix().describe('Address at which a web server hands the folder out.'),
  fileMode: z
    .string()
    .regex(/^0?[67][0-7]{2}$/, 'must be an octal mode that lets the owner read and write, such as "0644"')
    .optional()
    .describe('Permissions of stored files, octal. Default: what the server gives.'),
  directoryMode: z
    .string()
    .regex(/^[0-7]?7[0-7]{2}$/, 'must be an octal mode that lets the owner do everything, such as "0755"')
    .optional()
    .describe('Permissions of folders that are made, octal. Default: what the server gives.'),
})

type Options = z.output<typeof config>

/** A server that speaks SFTP. Nothing is ever run in a shell there. */
export const sftp = defineProvider({
  type: 'sftp',
  about: {
    family: 'server',
    what: 'SFTP with password, key or agent',
    testedAgainst: 'OpenSSH and ProFTPD',
    example: {
      blog: {
        host: 'www.example.com',
        username: 'deploy',
        privateKeyFile: '~/.ssh/id_ed25519',
        hostFingerprint: 'SHA256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA',
        directory: '/var/www/img',
        urlPrefix: 'https://www.example.com/img',
        fileMode: '0644',
        directoryMode: '0755',
      },
      nas: {
        host: '192.168.1.10',
        port: 2222,
        username: 'me',
        password: 'NAS_PASSWORD',
        directory: 'web/img',
        urlPrefix: 'http://192.168.1.10/img',
      },
    },
    choices: [
      {
        label: 'SFTP',
        hint: 'a server you reach by SSH',
        asks: ['host', 'port', 'username', 'password?', 'privateKeyFile?', 'directory?', 'urlPrefix'],
      },
    ],
  },
  config,
  validate,
  open,
  fromPicGo,
})

function validate({ password, privateKey, privateKeyFile, passphrase, agent }: Options): string | undefined {
  const hasKey = privateKey !== undefined || privateKeyFile !== undefined
  if (!hasKey && password === undefined && agent === undefined)
    return 'Give a "password", a "privateKey", a "privateKeyFile" or an "agent" to log in with.'
  if (privateKey !== undefined && privateKeyFile !== undefined)
    return 'Give "privateKey" or "privateKeyFile", not both.'
  if (passphrase !== undefined && !hasKey)
    return 'A "passphrase" belongs to a "privateKey" or a "privateKeyFile".'
  return undefined
}

function open(options: Options, { name, warn, knownHosts, outgoing = DIRECT }: ProviderDeps): Target {
  const server = `"sftp/${name}" (${options.host}, port ${options.port})`
  const directory = cleanFolder(options.directory)
  const { host, port } = options
  const pinned = [options.hostFingerprint ?? []].flat()
  const hostKeys = createHostKeys({ host, port, pinned, files: knownHosts, server, warn })
  const connection = createConnection((onLost, signal) =>
    connect(options, { server, hostKeys, outgoing, onLost }, signal),
  )
  const folders = createRemoteFolders(parseMode(options.directoryMode))
  const uploads = createSftpUploads({ server, directory, fileMode: parseMode(options.fileMode), folders })
  const background = createBackground()

  const use = <T>(
    what: string,
    signal: AbortSignal,
    work: (session: SftpSession) => Promise<T>,
  ): Promise<T> =>
    background.run(async () => {
      let session: SftpSession | undefined
      const leave = () => session?.doubt()
      signal.addEventListener('abort', leave)
      try {
        session = await connection.get()
        signal.throwIfAborted()
        return await work(session)
      } catch (error) {
        throw signal.aborted ? signal.reason : explainStatus(error, server, what)
      } finally {
        signal.removeEventListener('abort', leave)
      }
    }, signal)

  return {
    async put(object, signal) {
      const place = resolveKey(directory, object.key)
      await use(`Storing "${object.key}"`, signal, session => uploads.put(session, object, place, signal))
      return { url: joinUrl(options.urlPrefix, object.key) }
    },
    async meet(signal) {
      let stranger: Buffer | undefined
      const look = async (key: Buffer) => {
        if ((await hostKeys.judge(key)) === 'unknown') stranger = key
        return new UploadError('delivery_failed', `${server} was only looked at.`)
      }
      const onLost = () => {}
      await connect(
        options,
        { server, hostKeys: { ...hostKeys, judge: look }, outgoing, onLost },
        signal,
      ).catch(() => {})
      const key = stranger
      return key && { shown: hostKeys.tell(key), trust: () => hostKeys.trust(key) }
    },
    check: signal => use('Storing a probe file', signal, uploads.probe),
    async exists(key, signal) {
      const { path } = resolveKey(directory, key)
      return use(
        `Looking for "${key}"`,
        signal,
        async session => (await findFile(session, path)) !== undefined,
      )
    },
    async remove(key, signal) {
      const { path } = resolveKey(directory, key)
      await use(`Removing "${key}"`, signal, session => removeFile(session, path))
    },
    async close() {
      await background.settle()
      connection.close()
    },
  }
}

function parseMode(mode: string | undefined): number | undefined {
  return mode === undefined ? undefined : Number.parseInt(mode, 8)
}
