import { announce, element, words } from './words.ts'

const STORAGE = 'upload-server-key'

let key = sessionStorage.getItem(STORAGE) ?? ''

/** The upload key as a header. It is never put into a URL, since URLs are logged; `Authorization` may belong to a proxy. */
export function keyHeaders(): Record<string, string> {
  // Header values are bytes, while a key may contain any characters.
  const bytes = new TextEncoder().encode(key)
  return key === '' ? {} : { 'X-Upload-Key': String.fromCharCode(...bytes) }
}

/** Sets up the key field. The key is discarded with the page unless the visitor asks to remember it. */
export function setUpKey(onAdmitted: () => void): void {
  const field = element<HTMLInputElement>('key-text')
  const keep = element<HTMLInputElement>('key-keep')
  element('key-form').addEventListener('submit', event => {
    event.preventDefault()
    key = field.value.trim()
    if (keep.checked) sessionStorage.setItem(STORAGE, key)
    else sessionStorage.removeItem(STORAGE)
    void reloadVisitor(onAdmitted)
  })
  keep.addEventListener('change', () => {
    if (!keep.checked) sessionStorage.removeItem(STORAGE)
  })
  if (key === '') return
  field.value = key
  keep.checked = true
  void reloadVisitor(onAdmitted)
}

/** Loads this page again with the key, and replaces the parts that depend on the visitor. */
async function reloadVisitor(onAdmitted: () => void): Promise<void> {
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
  } else if (!page) showError(words.unreachable)
  else showError(code === 'unauthorized' ? words.keyRefused : '')
}

async function fetchPage(): Promise<Document | undefined> {
  try {
    // This header tells the server that the page sent the key, and not a proxy in front of it.
    const headers = { ...keyHeaders(), 'X-Requested-With': 'XMLHttpRequest' }
    const response = await fetch(location.href, { headers })
    return new DOMParser().parseFromString(await response.text(), 'text/html')
  } catch {
    return undefined
  }
}

/** @param text replaces the current message, unless it is empty */
function showError(text: string): void {
  const visitor = element('visitor')
  const title = visitor.querySelector('strong, .admitted')
  if (title && text) title.textContent = text
  visitor.classList.add('wrong')
  announce(title?.textContent ?? '')
}
