import { isRecord, type Json } from '../json.ts'
import { type OnNote, text } from './json.ts'

/** Plugins whose uploader one of our providers replaces. */
const NOT_NEEDED = new Set(['picgo-plugin-s3', 'picgo-plugin-web-uploader'])

/** Adds a note for each feature in use that this server does not have. Settings of the user interface get none. */
export function noteLeftOut(file: Json, picBed: Json, settings: Json, note: OnNote): void {
  if (text(file.configPath) !== undefined)
    note('configPath', 'is the file that PicGo really uses. Import that one instead')
  if (Array.isArray(file.uploaded) && file.uploaded.length > 0)
    note('uploaded', 'was ignored: the gallery is not imported')
  const transformer = text(picBed.transformer)
  if (transformer !== undefined && transformer !== 'path' && transformer !== 'base64')
    note('picBed.transformer', 'was ignored: plugins do not run here')
  notePlugins(file.picgoPlugins, note)
  noteSettings(settings, note)
}

function notePlugins(plugins: unknown, note: OnNote): void {
  if (!isRecord(plugins)) return
  const active = Object.keys(plugins).filter(name => plugins[name] === true && !NOT_NEEDED.has(name))
  if (active.length > 0) note('picgoPlugins', `was ignored: plugins do not run here (${active.join(', ')})`)
}

function noteSettings(settings: Json, note: OnNote): void {
  const reasons = {
    rename: 'the server cannot ask for a name',
    useShortUrl: 'URLs are not shortened',
    enableWebServer: 'the server serves only files of "local" destinations with "serve"',
    deleteLocalFile: 'uploaded files are never deleted',
  }
  for (const [name, reason] of Object.entries(reasons))
    if (settings[name] === true) note(`settings.${name}`, `was ignored: ${reason}`)
}
