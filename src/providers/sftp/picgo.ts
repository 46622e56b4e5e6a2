import { readText } from '../shared/picgo-options.ts'

/** PicList's options for SFTP (`sftpplist`) as ours. */
export function fromPicGo(options: Record<string, unknown>): {
  options: Record<string, unknown>
  notes: string[]
} {
  const notes: string[] = []
  const read = (name: string) => readText(options[name])
  const readMode = (name: string): string | undefined => {
    const mode = read(name)
    if (mode === undefined || /^0?[67][0-7]{2}$/.test(mode)) return mode
    notes.push(`"${name}" was left out: "${mode}" is no octal mode that lets the owner read and write.`)
    return undefined
  }
  const port = Number(read('port'))
  const privateKeyFile = read('privateKey')
  const folder = splitPath(read('uploadPath'))
  if (read('fileUser') !== undefined) {
    notes.push(
      '"fileUser" was left out: no commands are run on the server. Log in as the user files shall belong to.',
    )
  }
  notes.push(
    'Files get names like "name-1a2b3c4d.png", so that none replaces another by accident: see "keyTemplate".',
    'The host key is trusted when it is first seen: set "hostFingerprint" to be sure of it.',
  )
  return {
    options: {
      host: read('host'),
      port: Number.isInteger(port) && port > 0 && port < 65_536 ? port : undefined,
      username: read('username'),
      // With a key, PicList does not use the password.
      ...(privateKeyFile === undefined
        ? { password: read('password') }
        : { privateKeyFile, passphrase: read('passphrase') }),
      directory: `/${folder.join('/')}`,
      urlPrefix: joinAddress(read('customUrl'), read('host'), splitPath(read('webPath')), folder, notes),
      fileMode: readMode('fileMode'),
      directoryMode: readMode('dirMode'),
      keyTemplate: '{filename}-{sha256-8}{extname}',
    },
    notes,
  }
}

/** As PicList builds it: `customUrl`, else the host, and the folder of the web site, else the one on the server. */
function joinAddress(
  customUrl: string | undefined,
  host: string | undefined,
  webFolder: string[],
  folder: string[],
  notes: string[],
): string | undefined {
  let base = customUrl
  if (base === undefined && host !== undefined) {
    base = `http://${host}`
    notes.push(`"customUrl" is missing, so "urlPrefix" leads to "${host}" itself: check it.`)
  } else if (base !== undefined && !/^https?:\/\//i.test(base)) {
    base = `https://${base}`
    notes.push('"customUrl" has no scheme, so https is assumed: check "urlPrefix".')
  }
  if (base === undefined) return undefined
  const segments = webFolder.length > 0 ? webFolder : folder
  return [base.replace(/(?<!\/)\/+$/, ''), ...segments.map(segment => encodeURIComponent(segment))].join('/')
}

function splitPath(path = ''): string[] {
  return path
    .toWellFormed()
    .split(/[\\/]+/)
    .filter(segment => segment !== '' && segment !== '.')
}
