import {
  HASHED_NAME,
  joinAddress,
  readTextOption,
  splitPath,
  type Translated,
} from '../shared/picgo-options.ts'

/**
 * Translates PicList's options for SFTP (`sftpplist`). URLs are built as in PicList: `customUrl` or else the host, and the
 * folder of the website or else the folder on the server.
 */
export function fromPicGo(options: Record<string, unknown>): Translated {
  const notes: string[] = []
  const read = (name: string) => readTextOption(options[name])
  const readMode = (name: string): string | undefined => {
    const mode = read(name)
    if (mode === undefined || /^0?[67][0-7]{2}$/.test(mode)) return mode
    notes.push(
      `"${name}" was not imported: "${mode}" is not an octal mode with read and write permission for the owner.`,
    )
    return undefined
  }
  const port = Number(read('port'))
  const privateKeyFile = read('privateKey')
  const [folder, webFolder] = [splitPath(read('uploadPath')), splitPath(read('webPath'))]
  const host = read('host')
  const address = read('customUrl') ?? (host && `http://${host}`)
  if (read('fileUser') !== undefined) {
    notes.push(
      '"fileUser" was not imported: no commands are run on the server. Log in as the user who should own the files.',
    )
  }
  notes.push('The host key is trusted on first use. Set "hostFingerprint" to pin it.')
  if (host !== undefined && read('customUrl') === undefined) {
    notes.push(`"customUrl" is missing, so "urlPrefix" was set to "${host}". Check it.`)
  }
  return {
    options: {
      host,
      port: Number.isInteger(port) && port > 0 && port < 65_536 ? port : undefined,
      username: read('username'),
      // PicList does not use the password if it has a private key.
      ...(privateKeyFile === undefined
        ? { password: read('password') }
        : { privateKeyFile, passphrase: read('passphrase') }),
      directory: `/${folder.join('/')}`,
      urlPrefix: joinAddress(address, webFolder.length > 0 ? webFolder : folder, notes),
      fileMode: readMode('fileMode'),
      directoryMode: readMode('dirMode'),
      keyTemplate: HASHED_NAME,
    },
    notes,
  }
}
