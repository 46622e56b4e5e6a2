import { completeProxy, parseProxy } from '../../http/proxy/address.ts'
import { defectOf } from '../../payload/object-key.ts'
import { encodeSegment, toUrlSuffix, withoutSlash } from './public-url.ts'

/** A name with a part of the hash, because files with PicGo's names would replace each other. The import reports it. */
export const HASHED_NAME = '{filename}-{sha256-8}{extname}'

/** Options of PicGo or PicList. What can't be read is unset, and becomes a note. */
export type PicGoOptions = ReturnType<typeof openOptions>

/** Runs `read`, and collects its notes about options that can't be imported. */
export function readPicGo(
  all: Readonly<Record<string, unknown>>,
  read: (old: PicGoOptions) => Record<string, unknown>,
) {
  const notes: string[] = []
  return { options: read(openOptions(all, sentence => void notes.push(sentence))), notes }
}

/** @param all as they were saved */
function openOptions(all: Readonly<Record<string, unknown>>, note: (sentence: string) => void) {
  const find = (name: string) => (Object.hasOwn(all, name) ? all[name] : undefined)
  /** A string or a number as trimmed text. Undefined if it is empty. */
  const text = (name: string) => textOf(find(name))
  return {
    all,
    text,
    note,
    /** A boolean, which the desktop application may write as text. */
    flag: (name: string) => find(name) === true || text(name)?.toLowerCase() === 'true',
    /** Text appended to URLs. */
    suffix: (name: string) => toUrlSuffix(text(name)),
    /** The segments of a folder. */
    folder: (name: string) => splitPath(text(name)),
    /** A base URL. The default scheme is https. */
    url(name: string): string | undefined {
      const given = text(name)
      if (given === undefined) return undefined
      const hasScheme = /^[a-z][a-z\d+.-]*:\/\//i.test(given)
      const url = withoutSlash(hasScheme ? given : `https://${given}`)
      if (!/^https?:\/\/[^?#]+$/i.test(url) || !URL.canParse(url)) {
        const why = 'it is not an http or https URL that object keys can be appended to'
        note(`"${name}" was not imported: ${why}.`)
        return undefined
      }
      if (!hasScheme) note(`"${name}" has no scheme, so https was assumed. Check "urlPrefix".`)
      return url
    },
    /** The URL of the option `proxy`. */
    proxy(): string | undefined {
      const given = text('proxy')
      const proxy = given && completeProxy(given)
      if (proxy === undefined || parseProxy(proxy)) return proxy
      note('"proxy" was not imported: it is not the URL of an HTTP, HTTPS or SOCKS5 proxy.')
      return undefined
    },
    /** Makes a key template of a folder and a file name with a hash, so that no file replaces another one. */
    template(folder: string | undefined): string {
      const template = [...splitPath(folder), HASHED_NAME].join('/')
      if (defectOf(template) === undefined) return template
      note('"path" was not imported: it is not a valid prefix of an object key.')
      return HASHED_NAME
    },
  }
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
