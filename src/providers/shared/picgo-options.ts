/** A text of PicGo's configuration, or a number as one, without blanks around it; undefined when nothing is left. */
export function readText(value: unknown): string | undefined {
  const text = typeof value === 'number' ? String(value) : typeof value === 'string' ? value.trim() : ''
  return text === '' ? undefined : text
}

/** PicGo's `customUrl` as our `urlPrefix`; what is no web address is left out with a note. */
export function readAddress(value: unknown, notes: string[], name = 'customUrl'): string | undefined {
  const address = readText(value)
  if (address === undefined) return undefined
  if (/^https?:\/\/[^?#]+$/i.test(address) && URL.canParse(address)) return address.replace(/(?<!\/)\/+$/, '')
  notes.push(`"${name}" was left out: it is no web address to which names can be appended.`)
  return undefined
}

/**
 * PicGo's `path`, a folder in front of names, as a key template. Names get a part of their hash, since PicGo's own
 * would replace each other.
 *
 * @param placeholders what stands for some parts of the path
 */
export function readFolder(
  value: unknown,
  notes: string[],
  placeholders: Readonly<Record<string, string>> = {},
): string {
  notes.push(
    'Files get names like "name-1a2b3c4d.png", so that none replaces another by accident: see "keyTemplate".',
  )
  const segments = (readText(value) ?? '')
    .split(/[\\/]+/)
    .filter(segment => segment !== '' && segment !== '.')
  const isPlain = segments.every(segment => segment !== '..' && !/[{}\u0000-\u001f]/.test(segment))
  if (!isPlain) notes.push('"path" was left out: it cannot be the beginning of a key.')
  const folders = isPlain ? segments.map(segment => placeholders[segment] ?? segment) : []
  return [...folders, '{filename}-{sha256-8}{extname}'].join('/')
}
