import { announce, element, words } from './words.ts'

const PLACE = 'upload-server-key'

let key = sessionStorage.getItem(PLACE) ?? ''

/** The upload key as a header, never in an address: those are logged. `Authorization` may be a proxy's. */
export function keyHeaders(): Record<string, string> {
  // Headers hold bytes; a key may hold any letters.
  const bytes = new TextEncoder().encode(key)
  return key === '' ? {} : { 'X-Upload-Key': String.fromCharCode(...bytes) }
}

/** Wires the field for the key. It is forgotten with the page unless the visitor asks for more. */
export function setUpKey(): void {
  const field = element<HTMLInputElement>('key-text')
  const keep = element<HTMLInputElement>('key-keep')
  element('key-form').addEventListener('submit', event => {
    event.preventDefault()
    key = field.value.trim()
    if (keep.checked) sessionStorage.setItem(PLACE, key)
    else sessionStorage.removeItem(PLACE)
    void askAgain()
  })
  keep.addEventListener('change', () => {
    if (!keep.checked) sessionStorage.removeItem(PLACE)
  })
  if (key === '') return
  field.value = key
  keep.checked = true
  void askAgain()
}

/** Asks the server for this page with the key, and takes from it what depends on the visitor. */
async function askAgain(): Promise<void> {
  try {
    const response = await fetch(location.href, { headers: keyHeaders() })
    const page = new DOMParser().parseFromString(await response.text(), 'text/html')
    for (const id of ['visitor', 'destinations']) {
      const news = page.getElementById(id)
      if (news) element(id).replaceWith(document.adoptNode(news))
    }
    const admitted = element('visitor').dataset['admitted'] !== undefined
    element<HTMLDetailsElement>('key').open = !admitted
    announce(admitted ? words.keyAccepted : words.keyRefused)
  } catch {
    announce(words.unreachable)
  }
}
