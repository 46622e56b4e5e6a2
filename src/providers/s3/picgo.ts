import { parseKeyTemplate } from '../../payload/object-key.ts'
import { HASHED_NAME, readProxy, readTextOption, type Translated } from '../shared/picgo-options.ts'
import { toUrlSuffix, withoutSlash } from '../shared/public-url.ts'
import { cleanRelative } from '../shared/remote-path.ts'

/** Options of PicGo or PicList. What can't be read is unset, and becomes a note. */
export interface PicGoReader {
  /** A string or a number as trimmed text. Undefined if it is empty. */
  text(name: string): string | undefined
  has(name: string): boolean
  /** A boolean, which the desktop application may write as text. */
  flag(name: string): boolean
  /** A base URL. The default scheme is https. */
  url(name: string): string | undefined
  /** What is appended to URLs. */
  suffix(name: string): string | undefined
  proxy(): string | undefined
  /** Makes a key template of a folder and a file name with a hash, so that no file replaces another one. */
  template(folder: string | undefined): string
  note(sentence: string): void
}

/** Runs `read`, and collects its notes. */
export function readPicGo(
  options: Readonly<Record<string, unknown>>,
  read: (old: PicGoReader) => Record<string, unknown>,
): Translated {
  const notes: string[] = []
  const note = (sentence: string) => void notes.push(sentence)
  const find = (name: string) => (Object.hasOwn(options, name) ? options[name] : undefined)
  const text = (name: string) => readTextOption(find(name))
  const translated = read({
    text,
    note,
    has: name => Object.hasOwn(options, name),
    flag: name => String(find(name)).toLowerCase() === 'true',
    suffix: name => toUrlSuffix(text(name)),
    proxy: () => readProxy(find('proxy'), notes),
    url(name) {
      const address = text(name)
      if (address === undefined) return undefined
      const hasScheme = /^https?:\/\//i.test(address)
      const url = withoutSlash(hasScheme ? address : `https://${address}`)
      if (!URL.canParse(url) || /[?#]/.test(url)) {
        note(
          `"${name}" was not imported: it is not an http or https URL that object keys can be appended to.`,
        )
        return undefined
      }
      if (!hasScheme) note(`"${name}" has no scheme, so https was assumed. Check "urlPrefix".`)
      return url
    },
    template(path) {
      const folder = cleanRelative(path ?? '')
      const template = folder === '' ? HASHED_NAME : `${folder}/${HASHED_NAME}`
      if (isTemplate(template)) return template
      note(`"path" was not imported: "${path}" is not a valid prefix of an object key.`)
      return HASHED_NAME
    },
  })
  const entries = Object.entries(translated).filter(([, value]) => value !== undefined)
  return { options: Object.fromEntries(entries), notes }
}

export function isTemplate(template: string): boolean {
  try {
    parseKeyTemplate(template)
    return true
  } catch {
    return false
  }
}
