import { parseKeyTemplate } from '../../payload/object-key.ts'
import { HASHED_NAME, readTextOption } from '../shared/picgo-options.ts'
import { withoutSlash } from '../shared/public-url.ts'
import { cleanRelative } from '../shared/remote-path.ts'

/** Reads options of PicGo and PicList by name, as `readText` does. */
export function createReader(
  options: Readonly<Record<string, unknown>>,
): (name: string) => string | undefined {
  return name => readTextOption(Object.hasOwn(options, name) ? options[name] : undefined)
}

/** PicGo's folder as the beginning of a key template, with a name behind it that no other file has. */
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

/** An address without a slash at its end; https is assumed where there is no scheme. */
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
