import { fill, words } from './words.ts'

export type State = 'waiting' | 'sending' | 'stored' | 'pending' | 'failed' | 'cancelled'

/** Creates a row of the list from the document's template. @param image shown as the thumbnail */
export function makeRow(name: string, about: string, image?: File): HTMLLIElement {
  // The document is made by uploader.ts, which always contains this template and its row, so the casts are safe.
  const template = document.getElementById('row') as HTMLTemplateElement
  const row = (template.content.cloneNode(true) as DocumentFragment).firstElementChild as HTMLLIElement
  row.tabIndex = -1
  part(row, '.name bdi').textContent = name
  part(row, '.name small').textContent = about
  part(row, 'progress').setAttribute('aria-label', name)
  if (image) showThumbnail(row, URL.createObjectURL(image))
  return row
}

/** The element of a row that matches a selector. Every row is made from the template, so the callers' selectors match. */
export function part<T extends HTMLElement = HTMLElement>(row: HTMLLIElement, selector: string): T {
  return row.querySelector(selector) as T
}

/** Shows a state with its title, the server's message, and a detail. */
export function show(row: HTMLLIElement, state: State, title: string, reason = '', detail = ''): void {
  row.dataset['state'] = state
  part(row, '.state').textContent = title
  part(row, '.reason').textContent = reason
  part(row, '.detail').textContent = detail
}

/**
 * @param sent progress from 0 to 1; at 1 the server has the whole file and is storing it
 * @param pace speed and remaining time, if known
 */
export function showProgress(row: HTMLLIElement, sent: number, pace = ''): void {
  const progress = part<HTMLProgressElement>(row, 'progress')
  if (sent < 1) progress.value = sent
  else progress.removeAttribute('value')
  const title = sent < 1 ? fill(words.sending, { percent: Math.floor(sent * 100) }) : words.storing
  show(row, 'sending', title, '', pace)
}

/** Replaces the buttons of a row. The keyboard focus stays in the row if its button disappears. */
export function setActions(row: HTMLLIElement, ...buttons: HTMLElement[]): void {
  const hadFocus = row.contains(document.activeElement)
  part(row, '.actions').replaceChildren(...buttons)
  if (hadFocus && !row.contains(document.activeElement)) (buttons[0] ?? row).focus()
  else if (document.activeElement === row) buttons[0]?.focus()
}

/** Shows a thumbnail if the browser can decode the image. */
export function showThumbnail(row: HTMLLIElement, url: string): void {
  const image = new Image()
  image.alt = ''
  image.referrerPolicy = 'no-referrer'
  image.addEventListener('load', () => part(row, '.thumb').replaceChildren(image))
  image.src = url
}

export function showSize(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`
  const step = Math.min(3, Math.floor(Math.log2(bytes) / 10))
  return `${(bytes / 1024 ** step).toFixed(bytes < 10 * 1024 ** step ? 1 : 0)} ${['B', 'KB', 'MB', 'GB'][step]}`
}
