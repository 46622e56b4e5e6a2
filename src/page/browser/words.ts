import { en } from '../words-en.ts'

/** All texts of the page in the language of the document. */
export const texts = document.documentElement.lang === 'en' ? en : (await import('../words-zh.ts')).zh

/** The texts of the script. */
export const words = texts.script

/** The title of a failure with this error code. Undefined for codes that this page does not know. */
export function titleOf(code: string): string | undefined {
  return (words.failures as Readonly<Record<string, string>>)[code]
}

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
