import type { Json } from '../json.ts'
import { type Note, text } from './json.ts'

/** PicList's `local` uploader in our words; undefined, with a note, when it has no directory. */
export function translateLocal(options: Json, path: string, note: Note): Json | undefined {
  const directory = text(options.path)
  if (directory === undefined) {
    note(`${path}.path`, 'is missing, so the configuration was left out')
    return undefined
  }
  const urlPrefix = joinAddress(text(options.customUrl), text(options.webPath))
  if (urlPrefix !== undefined) return { directory, urlPrefix }
  note(`${path}.customUrl`, 'holds no web address, so this server hands the files out under "/files/" itself')
  return { directory, serve: true }
}

/** As PicList builds it: `customUrl`, a slash, and the segments of `webPath` percent-encoded. */
function joinAddress(customUrl: string | undefined, webPath = ''): string | undefined {
  if (customUrl === undefined || !/^https?:\/\/[^?#]+$/i.test(customUrl) || !URL.canParse(customUrl))
    return undefined
  const segments = webPath
    .toWellFormed()
    .split(/[\\/]+/)
    .filter(segment => segment !== '')
  return [customUrl.replace(/(?<!\/)\/+$/, ''), ...segments.map(encodeURIComponent)].join('/')
}
