import { completeProxy, parseProxy } from '../../http/proxy/address.ts'
import { defectOf } from '../../payload/object-key.ts'
import { encodeSegment, toUrlSuffix, withoutSlash } from './public-url.ts'

/** A name with a part of the hash, because files with PicGo's names would replace each other. The import reports it. */
export const HASHED_NAME = '{filename}-{sha256-8}{extname}'

/** Translated options of PicGo, with notes about options that can't be imported. */
export interface Translated {
  options: Record<string, unknown>
  notes: string[]
}

/** Options of PicGo or PicList. What can't be read is unset, and becomes a note. */
export interface PicGoOptions {
  /** All of them, as they were saved. */
  readonly all: Readonly<Record<string, unknown>>
  /** A string or a number as trimmed text. Undefined if it is empty. */
  text(name: string): string | undefined
  /** A boolean, which the desktop application may write as text. */
  flag(name: string): boolean
  /** A base URL. The default scheme is https. */
  url(name: string): string | undefined
  /** Text appended to URLs. */
  suffix(name: string): string | undefined
  /** The segments of a folder. */
  folder(name: string): string[]
  /** The URL of the option `proxy`. */
  proxy(): string | undefined
  /** Makes a key template of a folder and a file name with a hash, so that no file replaces another one. */
  template(folder: string | undefined): string
  note(sentence: string): void
}

/** Runs `read`, and collects its notes. */
export function readPicGo(
  all: Readonly<Record<string, unknown>>,
  read: (old: PicGoOptions) => Record<string, unknown>,
): Translated {
  const notes: string[] = []
  const note = (sentence: string) => void notes.push(sentence)
  const find = (name: string) => (Object.hasOwn(all, name) ? all[name] : undefined)
  const text = (name: string) => textOf(find(name))
  const options = read({
    all,
    text,
    note,
    flag: name => String(find(name)).toLowerCase() === 'true',
    suffix: name => toUrlSuffix(text(name)),
    folder: name => splitPath(text(name)),
    url(name) {
      const address = text(name)
      if (address === undefined) return undefined
      const hasScheme = /^[a-z][a-z\d+.-]*:\/\//i.test(address)
      const url = withoutSlash(hasScheme ? address : `https://${address}`)
      if (!/^https?:\/\/[^?#]+$/i.test(url) || !URL.canParse(url)) {
        note(
          `"${name}" was not imported: it is not an http or https URL that object keys can be appended to.`,
        )
        return undefined
      }
      if (!hasScheme) note(`"${name}" has no scheme, so https was assumed. Check "urlPrefix".`)
      return url
    },
    proxy() {
      const given = text('proxy')
      const proxy = given && completeProxy(given)
      if (proxy === undefined || parseProxy(proxy)) return proxy
      note('"proxy" was not imported: it is not the URL of an HTTP, HTTPS or SOCKS5 proxy.')
      return undefined
    },
    template(folder) {
      const template = [...splitPath(folder), HASHED_NAME].join('/')
      if (defectOf(template) === undefined) return template
      note('"path" was not imported: it is not a valid prefix of an object key.')
      return HASHED_NAME
    },
  })
  return { options, notes }
}

/** Returns a string or a number as trimmed text. Undefined if it is empty. */
export function textOf(value: unknown): string | undefined {
  const text =
    typeof value === 'number' ? String(value) : typeof value === 'string' ? value.toWellFormed().trim() : ''
  return text === '' ? undefined : text
}

/** Joins a base URL and a folder, as PicList does. */
export function joinFolder(base: string | undefined, folder: readonly string[]): string | undefined {
  return base && [base, ...folder.map(encodeSegment)].join('/')
}

/** Splits a path at slashes of either kind. */
function splitPath(path = ''): string[] {
  return path
    .toWellFormed()
    .split(/[\\/]+/)
    .filter(segment => segment !== '' && segment !== '.')
}
