import { copyText } from './copy.ts'
import { type Format, formatLink, type Link } from './links.ts'
import { part, setActions } from './row.ts'
import { element, fill, makeButton, words } from './words.ts'

const fieldset = element<HTMLFieldSetElement>('formats')

/** What is done when another format is chosen, for each row that is still there. */
const refreshers = new Map<HTMLLIElement, () => void>()

/** Shows the link of a row in the chosen format, with what can be done with it. */
export function showLink(row: HTMLLIElement, link: Link): void {
  const { url, name } = link
  const field = part<HTMLInputElement>(row, '.link')
  field.setAttribute('aria-label', fill(words.link, { name }))
  field.addEventListener('focus', () => field.select())
  const refresh = () => {
    field.value = formatLink(link, chosenFormat())
  }
  refresh()
  refreshers.set(row, refresh)
  const copy = makeButton(words.copy, name, () => void copyText(field.value, copy, field))
  // Links may be paths, too.
  setActions(row, copy, ...(/^https?:/.test(url) ? [makeOpener(url, name)] : []))
  fieldset.hidden = false
}

export function setUpFormats(): void {
  fieldset.addEventListener('change', () => {
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
  return fieldset.querySelector<HTMLInputElement>('input:checked')?.value as Format
}
