import { fileMode, folderMode } from '../../options.ts'
import type * as z from '../../packages/zod.ts'
import { HASHED_NAME, joinFolder, type PicGoOptions } from '../shared/picgo-options.ts'

/**
 * Translates PicList's options for SFTP (`sftpplist`). URLs are built as in PicList: `customUrl` or else the host, and the
 * folder of the website or else the folder on the server.
 */
export function picgo(old: PicGoOptions): Record<string, unknown> {
  const readMode = (name: string, schema: z.ZodType): string | undefined => {
    const mode = old.text(name)
    const { error } = schema.optional().safeParse(mode)
    if (!error) return mode
    old.note(`"${name}" was not imported: it ${error.issues[0]?.message}.`)
    return undefined
  }
  const [host, port, privateKeyFile] = [old.text('host'), Number(old.text('port')), old.text('privateKey')]
  const [folder, webFolder] = [old.folder('uploadPath'), old.folder('webPath')]
  const site = old.url('customUrl') ?? (host && `http://${host}`)
  if (old.text('fileUser') !== undefined)
    old.note(
      '"fileUser" was not imported: no commands are run on the server. Log in as the user who should own the files.',
    )
  old.note('The host key is trusted on first use. Set "hostFingerprint" to pin it.')
  if (host !== undefined && old.text('customUrl') === undefined)
    old.note(`"customUrl" is missing, so "urlPrefix" was set to "${host}". Check it.`)
  return {
    host,
    port: Number.isInteger(port) && port > 0 && port < 65_536 ? port : undefined,
    username: old.text('username'),
    // PicList does not use the password if it has a private key.
    ...(privateKeyFile === undefined
      ? { password: old.text('password') }
      : { privateKeyFile, passphrase: old.text('passphrase') }),
    directory: `/${folder.join('/')}`,
    urlPrefix: joinFolder(site, webFolder.length > 0 ? webFolder : folder),
    fileMode: readMode('fileMode', fileMode()),
    directoryMode: readMode('dirMode', folderMode()),
    keyTemplate: HASHED_NAME,
  }
}
