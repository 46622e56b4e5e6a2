import type { ScriptWords } from '../script-words.ts'

/** The texts of the script, which the document contains in its own language. */
export const words: ScriptWords = JSON.parse(document.body.dataset['words'] ?? '{}')

/** Fills in placeholders such as `{name}`. */
export function fill(text: string, values: Readonly<Record<string, string | number>>): string {
  return text.replace(/\{(\w+)\}/g, (_, name: string) => String(values[name] ?? ''))
}

/** Announces a text to screen readers. */
export function announce(text: string): void {
  element('status').textContent = text
}

/**
 * The element with an ID. The caller names its type, which is not checked: the document is made by uploader.ts.
 *
 * @throws Error if the document has no such element
 */
export function element<T extends HTMLElement = HTMLElement>(id: string): T {
  const found = document.getElementById(id)
  if (!found) throw new Error(`The page has no #${id}.`)
  return found as T
}

/** Creates a button. @param about what it acts on, for screen readers */
export function makeButton(text: string, about: string, press: () => void): HTMLButtonElement {
  const button = document.createElement('button')
  button.type = 'button'
  button.textContent = text
  button.setAttribute('aria-label', `${text} ${about}`)
  button.addEventListener('click', press)
  return button
}
