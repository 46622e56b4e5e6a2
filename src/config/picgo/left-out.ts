import { isRecord, type Json } from '../json.ts'
import { type Note, text } from './json.ts'

/** Plugins whose uploader has a provider of ours. */
const NOT_NEEDED = new Set(['picgo-plugin-s3', 'picgo-plugin-web-uploader'])

/** Notes the things in use that this server does not do. What only concerns windows and shortcuts is not worth a word. */
export function noteLeftOut(file: Json, picBed: Json, settings: Json, note: Note): void {
  if (text(file.configPath) !== undefined)
    note('configPath', 'names the file that is really in use: give that one instead')
  const transformer = text(picBed.transformer)
  if (transformer !== undefined && transformer !== 'path' && transformer !== 'base64')
    note('picBed.transformer', 'was left out: plugins do not run here')
  notePlugins(file.picgoPlugins, note)
  noteSettings(settings, note)
}

function notePlugins(plugins: unknown, note: Note): void {
  if (!isRecord(plugins)) return
  const active = Object.keys(plugins).filter(name => plugins[name] === true && !NOT_NEEDED.has(name))
  if (active.length > 0) note('picgoPlugins', `was left out: plugins do not run here (${active.join(', ')})`)
}

function noteSettings(settings: Json, note: Note): void {
  const reasons = {
    rename: 'there is nobody to ask for a name',
    useShortUrl: 'addresses are not shortened',
    enableWebServer: 'only what a "local" destination with "serve" stores is handed out',
    deleteLocalFile: 'uploaded files are never deleted',
  }
  for (const [name, reason] of Object.entries(reasons))
    if (settings[name] === true) note(`settings.${name}`, `was left out: ${reason}`)
}
