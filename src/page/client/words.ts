import type { ScriptWords } from '../script-words.ts'

/** In the language of the document, which brings them. */
export const words: ScriptWords = JSON.parse(document.body.dataset['words'] ?? '{}')

/** Fills in `{name}` and the like. */
export function fill(text: string, values: Readonly<Record<string, string | number>>): string {
  return text.replace(/\{(\w+)\}/g, (_, name: string) => String(values[name] ?? ''))
}

/** Says it to a screen reader. */
export function announce(text: string): void {
  element('status').textContent = text
}

/** The element with that id. */
export function element<T extends HTMLElement = HTMLElement>(id: string): T {
  const found = document.getElementById(id)
  if (!found) throw new Error(`The page has no #${id}.`)
  return found as T
}

/** A button with a text that says, to those who don't see where it stands, what it is about. */
export function makeButton(text: string, about: string, press: () => void): HTMLButtonElement {
  const button = document.createElement('button')
  button.type = 'button'
  button.textContent = text
  button.setAttribute('aria-label', `${text} ${about}`)
  button.addEventListener('click', press)
  return button
}
