import { element } from './words.ts'

const STORAGE = 'upload-server-key'
/** Where the key may be kept. It is discarded with the page unless the visitor asks to keep it. */
const PLACES = { tab: () => sessionStorage, device: () => localStorage }

let key = ''

export const hasKey = () => key !== ''

/** The upload key as a header. It is never put into a URL, since URLs are logged; `Authorization` may belong to a proxy. */
export function keyHeaders(): Record<string, string> {
  // Header values are bytes, while a key may contain any characters.
  const bytes = new TextEncoder().encode(key)
  return !hasKey() ? {} : { 'X-Upload-Key': String.fromCharCode(...bytes) }
}

/** Sets up the key field, with the key that this browser keeps. @param onKey called when the visitor enters another key */
export function setUpKey(onKey: () => void): void {
  const field = element<HTMLInputElement>('key-text')
  const keep = element<HTMLSelectElement>('key-keep')
  for (const [name, storage] of Object.entries(PLACES)) {
    const kept = attempt(() => storage().getItem(STORAGE))
    if (!kept) continue
    key = kept
    keep.value = name
  }
  field.value = key
  const save = () => {
    for (const [name, storage] of Object.entries(PLACES))
      attempt(() =>
        name === keep.value && hasKey() ? storage().setItem(STORAGE, key) : storage().removeItem(STORAGE),
      )
  }
  element('key-form').addEventListener('submit', event => {
    event.preventDefault()
    key = field.value.trim()
    save()
    onKey()
  })
  keep.addEventListener('change', save)
}

/** The storage may be full or switched off: the key is then kept until the page is closed. */
function attempt<T>(work: () => T): T | undefined {
  try {
    return work()
  } catch {
    return undefined
  }
}
