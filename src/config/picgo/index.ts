import type { Json } from '../../members.ts'
import { walk } from '../../options.ts'
import { translateDestinations } from './destinations.ts'
import { noteLeftOut } from './left-out.ts'
import { translateNaming } from './naming.ts'
import { compact, openOld } from './old.ts'
import { readPictures } from './pictures.ts'
import { translateLog, translateProxy, translateServer } from './settings.ts'

export interface Translation {
  /** The configuration in our format: plain JSON, not validated. */
  config: Json
  /** One sentence for each setting that could not be imported, with its path in the old file. Contains no secrets. */
  notes: string[]
  /** Path of each destination in the old file, by its id. */
  places: Map<string, string>
}

/** Translates a file for which `isPicGoConfig` is true. Never throws. */
export function translatePicGo(value: Json): Translation {
  const notes: string[] = []
  const places = new Map<string, string>()
  const note = (path: string, what: string) => void notes.push(`"${path}" ${what}.`)
  const file = openOld(value, '', note)
  const [picBed, uploader] = [file.section('picBed'), file.section('uploader')]
  const [settings, buildIn] = [file.section('settings'), file.section('buildIn')]
  const { keyTemplate, own: templates } = translateNaming(settings, buildIn, note)
  const pictures = readPictures(buildIn, note)
  const found = (id: string, path: string) => void places.set(id, path)
  const destinations = translateDestinations(picBed, uploader, settings, { templates, pictures, note, found })
  const server = translateServer(file, settings)
  const log = translateLog(settings)
  noteLeftOut(file, picBed, settings)
  const config = compact({
    server: Object.keys(server).length > 0 ? server : undefined,
    ...destinations,
    keyTemplate,
    images: pictures.general,
    network: translateProxy(picBed),
    log,
  })
  return { config: walk(undefined, config, escapeVariables), notes, places }
}

/** Replaces `${` with `$${`, because it is plain text in files of PicGo and a variable in ours. */
const escapeVariables = (value: unknown) =>
  typeof value === 'string' ? value.replaceAll('${', '$$$${') : value
