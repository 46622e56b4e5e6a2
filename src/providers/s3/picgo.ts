import { parseKeyTemplate } from '../../payload/object-key.ts'
import { HASHED_NAME, readTextOption } from '../shared/picgo-options.ts'
import { withoutSlash } from '../shared/public-url.ts'
import { cleanRelative } from '../shared/remote-path.ts'

/** Returns a function that reads an option of PicGo or PicList by its name, as `readTextOption` does. */
export function createReader(
  options: Readonly<Record<string, unknown>>,
): (name: string) => string | undefined {
  return name => readTextOption(Object.hasOwn(options, name) ? options[name] : undefined)
}

/** Makes a key template of PicGo's folder and a file name with a hash, so that no file replaces another one. */
export function toKeyTemplate(path: string | undefined, notes: string[]): string {
  const folder = cleanRelative(path ?? '')
  const template = folder === '' ? HASHED_NAME : `${folder}/${HASHED_NAME}`
  if (isTemplate(template)) return template
  notes.push(`"path" was not imported: "${path}" is not a valid prefix of an object key.`)
  return HASHED_NAME
}

export function isTemplate(template: string): boolean {
  try {
    parseKeyTemplate(template)
    return true
  } catch {
    return false
  }
}

/** Translates a base URL of PicGo to `urlPrefix`. The default scheme is https. */
export function toUrlPrefix(address: string | undefined, name: string, notes: string[]): string | undefined {
  if (address === undefined) return undefined
  const hasScheme = /^https?:\/\//i.test(address)
  const url = withoutSlash(hasScheme ? address : `https://${address}`)
  if (!URL.canParse(url) || /[?#]/.test(url)) {
    notes.push(
      `"${name}" was not imported: it is not an http or https URL that object keys can be appended to.`,
    )
    return undefined
  }
  if (!hasScheme) notes.push(`"${name}" has no scheme, so https was assumed. Check "urlPrefix".`)
  return url
}
