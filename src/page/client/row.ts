import { fill, words } from './words.ts'

export type State = 'waiting' | 'sending' | 'stored' | 'pending' | 'failed' | 'cancelled'

/** A new row of the list, from the document's template. @param picture shown in small */
export function makeRow(name: string, about: string, picture?: File): HTMLLIElement {
  const template = document.getElementById('row') as HTMLTemplateElement
  const row = (template.content.cloneNode(true) as DocumentFragment).firstElementChild as HTMLLIElement
  row.tabIndex = -1
  part(row, '.name bdi').textContent = name
  part(row, '.name small').textContent = about
  part(row, 'progress').setAttribute('aria-label', name)
  if (picture) showThumbnail(row, URL.createObjectURL(picture))
  return row
}

/** One part of a row. */
export function part<T extends HTMLElement = HTMLElement>(row: HTMLLIElement, selector: string): T {
  return row.querySelector(selector) as T
}

/** Shows a state: what it is called, why in the server's words, and what more there is to know. */
export function show(row: HTMLLIElement, state: State, title: string, reason = '', detail = ''): void {
  row.dataset['state'] = state
  part(row, '.state').textContent = title
  part(row, '.reason').textContent = reason
  part(row, '.detail').textContent = detail
}

/**
 * @param sent up to 1, when everything is with the server and it is its turn
 * @param pace how fast it goes, where that is known
 */
export function showProgress(row: HTMLLIElement, sent: number, pace = ''): void {
  const progress = part<HTMLProgressElement>(row, 'progress')
  if (sent < 1) progress.value = sent
  else progress.removeAttribute('value')
  const title = sent < 1 ? fill(words.sending, { percent: Math.floor(sent * 100) }) : words.storing
  show(row, 'sending', title, '', pace)
}

/** What can be done now. The keyboard stays in the row when the button it was on goes. */
export function setActions(row: HTMLLIElement, ...buttons: HTMLElement[]): void {
  const hadFocus = row.contains(document.activeElement)
  part(row, '.actions').replaceChildren(...buttons)
  if (hadFocus && !row.contains(document.activeElement)) (buttons[0] ?? row).focus()
  else if (document.activeElement === row) buttons[0]?.focus()
}

/** Shows a picture in small, if the browser can. */
export function showThumbnail(row: HTMLLIElement, address: string): void {
  const image = new Image()
  image.alt = ''
  image.referrerPolicy = 'no-referrer'
  image.addEventListener('load', () => part(row, '.thumb').replaceChildren(image))
  image.src = address
}

export function showSize(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`
  const step = Math.min(3, Math.floor(Math.log2(bytes) / 10))
  return `${(bytes / 1024 ** step).toFixed(bytes < 10 * 1024 ** step ? 1 : 0)} ${['B', 'KB', 'MB', 'GB'][step]}`
}
