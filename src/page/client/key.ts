import { announce, element, words } from './words.ts'

const PLACE = 'upload-server-key'

let key = sessionStorage.getItem(PLACE) ?? ''

/** The upload key as a header, never in an address: those are logged. `Authorization` may be a proxy's. */
export function keyHeaders(): Record<string, string> {
  // Headers hold bytes; a key may hold any letters.
  const bytes = new TextEncoder().encode(key)
  return key === '' ? {} : { 'X-Upload-Key': String.fromCharCode(...bytes) }
}

/** Wires the field for the key, which is forgotten with the page unless the visitor asks for more. */
export function setUpKey(onAdmitted: () => void): void {
  const field = element<HTMLInputElement>('key-text')
  const keep = element<HTMLInputElement>('key-keep')
  element('key-form').addEventListener('submit', event => {
    event.preventDefault()
    key = field.value.trim()
    if (keep.checked) sessionStorage.setItem(PLACE, key)
    else sessionStorage.removeItem(PLACE)
    void askAgain(onAdmitted)
  })
  keep.addEventListener('change', () => {
    if (!keep.checked) sessionStorage.removeItem(PLACE)
  })
  if (key === '') return
  field.value = key
  keep.checked = true
  void askAgain(onAdmitted)
}

/** Asks the server for this page with the key, and takes from it what depends on the visitor. */
async function askAgain(onAdmitted: () => void): Promise<void> {
  const page = await fetchPage()
  for (const id of ['visitor', 'destinations']) {
    const news = page?.getElementById(id)
    if (news) element(id).replaceWith(document.adoptNode(news))
  }
  const { admitted, code } = element('visitor').dataset
  element<HTMLDetailsElement>('key').open = admitted === undefined
  if (admitted !== undefined && page) {
    announce(words.keyAccepted)
    onAdmitted()
  } else if (!page) complain(words.unreachable)
  else complain(code === 'unauthorized' ? words.keyRefused : '')
}

async function fetchPage(): Promise<Document | undefined> {
  try {
    // By this the server knows that the key is the page's own, and none that a proxy adds.
    const headers = { ...keyHeaders(), 'X-Requested-With': 'XMLHttpRequest' }
    const response = await fetch(location.href, { headers })
    return new DOMParser().parseFromString(await response.text(), 'text/html')
  } catch {
    return undefined
  }
}

/** @param text in place of what stands there, unless empty */
function complain(text: string): void {
  const visitor = element('visitor')
  const title = visitor.querySelector('strong, .admitted')
  if (title && text) title.textContent = text
  visitor.classList.add('wrong')
  announce(title?.textContent ?? '')
}
