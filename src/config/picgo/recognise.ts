import { isRecord, type Json } from '../../members.ts'

/** Sections of our own format, which files of PicGo and PicList never have. They may have "server". */
const OUR_SECTIONS = ['providers', 'default', 'auth', 'sources', 'limits', 'keyTemplate']

/** Whether a parsed file is a PicGo or PicList file (`data.json` or `config.json`). Never true for our own format. */
export function isPicGoConfig(value: unknown): value is Json {
  if (!isRecord(value) || OUR_SECTIONS.some(name => Object.hasOwn(value, name))) return false
  if (Object.hasOwn(value, 'picBed') || Object.hasOwn(value, 'picgoPlugins')) return true
  const stores = isRecord(value.uploader) ? Object.values(value.uploader) : []
  return stores.some(store => isRecord(store) && Array.isArray(store.configList))
}
