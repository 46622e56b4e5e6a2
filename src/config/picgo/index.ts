import type { Json } from '../json.ts'
import { type OnDestination, translateDestinations } from './destinations.ts'
import { compact, escapeVariables, type OnNote, sectionOf } from './json.ts'
import { noteLeftOut } from './left-out.ts'
import { translateNaming } from './naming.ts'
import { readPictures } from './pictures.ts'
import { translateLogLevel, translateProxy, translateServer } from './settings.ts'

export interface Translation {
  /** The configuration in our format: plain JSON, not validated. */
  config: Record<string, unknown>
  /** One sentence for each setting that could not be imported, with its path in the old file. Contains no secrets. */
  notes: string[]
}

/**
 * Translates a file for which `isPicGoConfig` is true. Never throws.
 *
 * @param found is called for each destination
 */
export function translatePicGo(value: Record<string, unknown>, found: OnDestination = () => {}): Translation {
  const notes: string[] = []
  const note: OnNote = (path, what) => notes.push(`"${path}" ${what}.`)
  const read = (name: string): Json => sectionOf(value, name, name, note)
  const [picBed, uploader, settings, buildIn] = [
    read('picBed'),
    read('uploader'),
    read('settings'),
    read('buildIn'),
  ]
  const { keyTemplate, own } = translateNaming(settings, buildIn, note)
  const pictures = readPictures(buildIn, note)
  const destinations = translateDestinations(picBed, uploader, {
    templates: own,
    pictures,
    settings,
    note,
    found,
  })
  const server = translateServer(value, settings, note)
  const level = translateLogLevel(settings, note)
  noteLeftOut(value, picBed, settings, note)
  const config = compact({
    server: Object.keys(server).length > 0 ? server : undefined,
    ...destinations,
    keyTemplate,
    images: pictures.general,
    network: translateProxy(picBed, note),
    log: level === undefined ? undefined : { level },
  })
  return { config: escapeVariables(config), notes }
}
