import { isRecord } from '../json.ts'

/** Sections of our own format that no file of PicGo or PicList has. */
const OUR_SECTIONS = ['providers', 'default', 'server', 'auth', 'sources', 'limits', 'keyTemplate']

/** Whether a parsed file is one of PicGo or PicList (`data.json` or `config.json`). Never true for one of ours. */
export function isPicGoConfig(value: unknown): boolean {
  if (!isRecord(value) || OUR_SECTIONS.some(name => Object.hasOwn(value, name))) return false
  if (Object.hasOwn(value, 'picBed') || Object.hasOwn(value, 'picgoPlugins')) return true
  const stores = isRecord(value.uploader) ? Object.values(value.uploader) : []
  return stores.some(store => isRecord(store) && Array.isArray(store.configList))
}
