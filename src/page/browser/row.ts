import { isLocalUrl } from '../editors.ts'
import { prose } from '../html.ts'
import { type Format, formatLink, type Link } from '../links.ts'
import { copyText } from './copy.ts'
import { element, fill, keepChoice, makeButton, part, readKept, words } from './page.ts'

export type State = 'waiting' | 'sending' | 'stored' | 'pending' | 'failed' | 'cancelled'

/** A row of a list. */
export type Row = HTMLLIElement

/** The links of the rows that have one. */
const links = new WeakMap<Row, Link>()
const fieldset = element('formats')
const date = new Intl.DateTimeFormat(words.lang, { dateStyle: 'medium', timeStyle: 'short' })
export const showTime = (time: number) => date.format(time)

/** Creates a row from the document's template. @param about its size or time @param image URL of its thumbnail */
export function makeRow(name: string, about: string, image?: string): Row {
  const { content } = element<HTMLTemplateElement>('row') as HTMLTemplateElement
  const row = document.importNode(content, true).firstElementChild as Row
  row.tabIndex = -1
  part(row, '.name bdi').textContent = name
  part(row, '.name small').textContent = about
  part(row, 'progress').setAttribute('aria-label', name)
  if (image) showThumbnail(row, image)
  return row
}

/** Shows a thumbnail if the browser can decode the image. */
export function showThumbnail(row: Row, url: string): void {
  const image = new Image()
  image.alt = ''
  image.referrerPolicy = 'no-referrer'
  image.addEventListener('load', () => part(row, '.thumb').replaceChildren(image))
  image.src = url
}

/** Shows a state with its title, the server's message, a detail and buttons. The keyboard focus stays in the row. */
export function show(
  row: Row,
  state: State,
  { title = '', reason = '', detail = '' },
  ...buttons: HTMLElement[]
): void {
  row.dataset['state'] = state
  part(row, '.state').textContent = title
  part(row, '.reason').textContent = reason
  part(row, '.detail').textContent = detail
  const hadFocus = row.contains(document.activeElement)
  part(row, '.actions').replaceChildren(...buttons)
  if (hadFocus) (buttons[0] ?? row).focus()
}

/** Shows a stored file: its link in the chosen format, with buttons to copy and open it. */
export function showStored(row: Row, link: Link, ...buttons: HTMLElement[]): void {
  const { url, name, expiresAt } = link
  links.set(row, link)
  const field = part(row, '.link')
  field.setAttribute('aria-label', fill(words.link.name, { name }))
  field.textContent = linkOf(row)
  field.addEventListener('focus', () => getSelection()?.selectAllChildren(field))
  const detail =
    expiresAt === undefined ? '' : fill(words.link.expires, { time: showTime(Date.parse(expiresAt)) })
  const copy = makeButton(words.link.copy, name, () => void copyText(linkOf(row), copy, field))
  // A destination without a URL prefix returns a path, which a browser can't open.
  const openers = /^https?:/.test(url)
    ? [makeOpener(url, name), makeButton(words.link.qrCode, name, () => void showQrCode(url, name))]
    : []
  show(row, 'stored', { title: words.state.stored, detail }, ...buttons, copy, ...openers)
  element('tools').hidden = false
  if (!isLocalUrl(url)) return
  const note = element('local')
  note.hidden = false
  note.innerHTML = prose(fill(words.link.isLocal, { base: new URL(url).origin })).html
}

/** The link of a row in the chosen format. */
export function linkOf(row: Row): string {
  const link = links.get(row)
  // One of the radio buttons is always checked, and their values are the formats.
  const format = part<HTMLInputElement>(fieldset, 'input:checked').value as Format
  return link ? formatLink(link, format) : ''
}

export function setUpFormats(): void {
  const { format } = readKept('choices') ?? {}
  for (const button of fieldset.querySelectorAll('input')) if (button.value === format) button.checked = true
  fieldset.addEventListener('change', ({ target }) => {
    keepChoice({ format: (target as HTMLInputElement).value })
    for (const row of document.querySelectorAll<Row>('li[data-state=stored]'))
      part(row, '.link').textContent = linkOf(row)
  })
}

function makeOpener(url: string, name: string): HTMLAnchorElement {
  const opener = document.createElement('a')
  opener.className = 'plain button'
  opener.href = url
  opener.target = '_blank'
  opener.rel = 'noopener noreferrer'
  opener.textContent = words.link.open
  opener.setAttribute('aria-label', `${words.link.open} ${name}`)
  return opener
}

/** Shows a URL as a QR code, to open it on a phone. The encoder is loaded when it is needed. */
async function showQrCode(url: string, name: string): Promise<void> {
  const { default: qrcode } = await import('qrcode-generator')
  const code = qrcode(0, 'M')
  code.addData(url)
  code.make()
  const size = code.getModuleCount()
  let path = ''
  for (let row = 0; row < size; row++)
    for (let column = 0; column < size; column++)
      if (code.isDark(row, column)) path += `M${column} ${row}h1v1h-1z`
  // Dark on white in every color scheme, with the quiet zone of 4 modules that readers need.
  const side = size + 8
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="-4 -4 ${side} ${side}" shape-rendering="crispEdges"><path fill="#fff" d="M-4-4h${side}v${side}h-${side}z"/><path d="${path}"/></svg>`
  const image = new Image()
  image.alt = url
  image.src = `data:image/svg+xml,${encodeURIComponent(svg)}`
  const dialog = element<HTMLDialogElement>('qr')
  part(dialog, 'bdi').textContent = name
  part(dialog, 'div').replaceChildren(image)
  dialog.showModal()
}
