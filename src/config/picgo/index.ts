import type { Json } from '../json.ts'
import { type Found, translateDestinations } from './destinations.ts'
import { compact, escapeVariables, type Note, section } from './json.ts'
import { noteLeftOut } from './left-out.ts'
import { translateNaming } from './naming.ts'
import { readPictures } from './pictures.ts'
import { translateLogLevel, translateProxy, translateServer } from './settings.ts'

export interface Translation {
  /** Our configuration, as it would stand in a file of ours: plain JSON, not validated. */
  config: Record<string, unknown>
  /** One sentence for each thing that could not be carried over, naming its path in the old file. Holds no secrets. */
  notes: string[]
}

/**
 * Translates a file that `isPicGoConfig` has recognised. Whatever it holds, nothing is thrown.
 *
 * @param found is told of each destination
 */
export function translatePicGo(value: Record<string, unknown>, found: Found = () => {}): Translation {
  const notes: string[] = []
  const note: Note = (path, what) => notes.push(`"${path}" ${what}.`)
  const read = (name: string): Json => section(value, name, name, note)
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
  const server = translateServer(settings, note)
  const level = translateLogLevel(settings, note)
  noteLeftOut(value, picBed, settings, note)
  const config = compact({
    server: Object.keys(server).length > 0 ? server : undefined,
    ...destinations,
    keyTemplate,
    pictures: pictures.general,
    network: translateProxy(picBed, note),
    log: level === undefined ? undefined : { level },
  })
  return { config: escapeVariables(config) as Json, notes }
}
