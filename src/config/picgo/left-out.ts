import { isRecord } from '../../members.ts'
import type { Old } from './old.ts'

/** Plugins whose uploader one of our providers replaces. */
const NOT_NEEDED = new Set(['picgo-plugin-s3', 'picgo-plugin-web-uploader'])

const UNSUPPORTED_SETTINGS = {
  rename: 'the server cannot ask for a name',
  useShortUrl: 'URLs are not shortened',
  enableWebServer: 'the server serves only files of "local" destinations with "serve"',
  deleteLocalFile: 'uploaded files are never deleted',
}

/** Adds a note for each feature in use that this server does not have. Settings of the user interface get none. */
export function noteLeftOut(file: Old, picBed: Old, settings: Old): void {
  if (file.text('configPath') !== undefined)
    file.note('configPath', 'is the file that PicGo really uses. Import that one instead')
  const uploaded = file.get('uploaded')
  if (Array.isArray(uploaded) && uploaded.length > 0)
    file.note('uploaded', 'was ignored: the gallery is not imported')
  if (!['path', 'base64', undefined].includes(picBed.text('transformer')))
    picBed.note('transformer', 'was ignored: plugins do not run here')
  const plugins = file.get('picgoPlugins')
  const active = Object.entries(isRecord(plugins) ? plugins : {})
    .filter(([name, isOn]) => isOn === true && !NOT_NEEDED.has(name))
    .map(([name]) => name)
  if (active.length > 0)
    file.note('picgoPlugins', `was ignored: plugins do not run here (${active.join(', ')})`)
  for (const [name, reason] of Object.entries(UNSUPPORTED_SETTINGS))
    if (settings.get(name) === true) settings.note(name, `was ignored: ${reason}`)
}
