import { isLocalUrl } from '../editors.ts'
import { prose } from '../html.ts'
import { type Format, formatLink, type Link } from '../links.ts'
import { copyText } from './copy.ts'
import { showQrCode } from './qr.ts'
import { part, setActions } from './row.ts'
import { saveChoice, savedChoices } from './saved.ts'
import { element, fill, makeButton, words } from './words.ts'

const fieldset = element<HTMLFieldSetElement>('formats')
const date = new Intl.DateTimeFormat(document.documentElement.lang, {
  dateStyle: 'medium',
  timeStyle: 'short',
})

/** Number of characters at the end of a link that are always visible, because links mostly differ there. */
const TAIL = 16

/** Rewrites the link of each row when the visitor chooses another format. */
const refreshers = new Map<HTMLLIElement, () => void>()

/** Shows the link of a row in the chosen format, with buttons to copy and open it. */
export function showLink(row: HTMLLIElement, link: Link, ...buttons: HTMLElement[]): void {
  const { url, name, expiresAt } = link
  showWhereLinksWork(url)
  const field = part(row, '.link')
  field.setAttribute('aria-label', fill(words.link, { name }))
  field.addEventListener('focus', () => getSelection()?.selectAllChildren(field))
  const refresh = () => {
    const text = formatLink(link, chosenFormat())
    const head = document.createElement('span')
    head.textContent = text.slice(0, -TAIL)
    field.replaceChildren(head, text.slice(-TAIL))
  }
  refresh()
  refreshers.set(row, refresh)
  part(row, '.detail').textContent =
    expiresAt === undefined ? '' : fill(words.expires, { time: showTime(Date.parse(expiresAt)) })
  const copy = makeButton(words.copy, name, () => void copyText(linkOf(row), copy, field))
  // A destination without a URL prefix returns a path, which a browser can't open.
  const openers = /^https?:/.test(url)
    ? [makeOpener(url, name), makeButton(words.qrCode, name, () => void showQrCode(url, name))]
    : []
  setActions(row, ...buttons, copy, ...openers)
  element('tools').hidden = false
}

/** Says that the links of this server work only on this machine, where that is so. */
function showWhereLinksWork(url: string): void {
  if (!isLocalUrl(url)) return
  const note = element('local')
  note.hidden = false
  note.innerHTML = prose(fill(words.localLinks, { base: new URL(url).origin })).html
}

/** The link of a row, in the chosen format. */
export function linkOf(row: HTMLLIElement): string {
  return part(row, '.link').textContent ?? ''
}

export function showTime(time: number): string {
  return date.format(time)
}

export function setUpFormats(): void {
  const { format } = savedChoices()
  for (const button of fieldset.querySelectorAll('input')) if (button.value === format) button.checked = true
  fieldset.addEventListener('change', () => {
    saveChoice({ format: chosenFormat() })
    for (const [row, refresh] of refreshers)
      if (row.isConnected) refresh()
      else refreshers.delete(row)
  })
}

function makeOpener(url: string, name: string): HTMLAnchorElement {
  const opener = document.createElement('a')
  opener.className = 'plain button'
  opener.href = url
  opener.target = '_blank'
  opener.rel = 'noopener noreferrer'
  opener.textContent = words.open
  opener.setAttribute('aria-label', `${words.open} ${name}`)
  return opener
}

function chosenFormat(): Format {
  // One of the radio buttons is always checked, and their values are the formats.
  return fieldset.querySelector<HTMLInputElement>('input:checked')?.value as Format
}
