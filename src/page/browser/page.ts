import { en } from '../words-en.ts'

/** All texts of the page in the language of the document. */
export const words = document.documentElement.lang === 'en' ? en : (await import('../words-zh.ts')).zh

/** The server's root. This script is served at /page/<version>/ below it, also behind a reverse proxy with a path prefix. */
const ROOT = new URL('../../', import.meta.url)
export const urlOf = (path: string) => new URL(path, ROOT)

/** The title of a failure with this error code. */
export const titleOf = (code: string) => words.failures[code] ?? words.state.failed

/** Fills in placeholders such as `{name}`. */
export function fill(text: string, values: Readonly<Record<string, string | number>>): string {
  return text.replace(/\{(\w+)\}/g, (_, name: string) => String(values[name] ?? ''))
}

/**
 * The element with an ID. The caller names its type, which is not checked: document.ts makes all of them.
 *
 * @throws Error if the document has no such element
 */
export function element<T extends HTMLElement = HTMLElement>(id: string): T {
  const found = document.getElementById(id)
  if (!found) throw new Error(`The page has no #${id}.`)
  return found as T
}

/** The element in another one that matches a selector. As above, the callers know what document.ts has made. */
export function part<T extends HTMLElement = HTMLElement>(place: HTMLElement, selector: string): T {
  return place.querySelector(selector) as T
}

/** Announces a text to screen readers. */
export function announce(text: string): void {
  element('status').textContent = text
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

export function showSize(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`
  const step = Math.min(3, Math.floor(Math.log2(bytes) / 10))
  return `${(bytes / 1024 ** step).toFixed(bytes < 10 * 1024 ** step ? 1 : 0)} ${['B', 'KB', 'MB', 'GB'][step]}`
}

/** What this browser keeps: the upload key, the visitor's choices, and the latest links. */
export interface Kept {
  key: string
  choices: { readonly format?: string; readonly destination?: string; readonly autoCopy?: boolean }
  links: readonly unknown[]
}

/** The storage name has the server's URL path, since several servers may share one origin. */
const storageName = (name: keyof Kept) => `upload-server-${name} ${ROOT.pathname}`

/** @returns undefined if nothing is kept, or the storage is switched off or damaged */
export function readKept<Name extends keyof Kept>(name: Name): Kept[Name] | undefined {
  try {
    return JSON.parse(localStorage.getItem(storageName(name)) ?? 'null') ?? undefined
  } catch {
    return undefined
  }
}

/** Keeps a value; undefined removes it. If the storage is full or switched off, it is lost with the page. */
export function keep<Name extends keyof Kept>(name: Name, value: Kept[Name] | undefined): void {
  try {
    if (value === undefined) localStorage.removeItem(storageName(name))
    else localStorage.setItem(storageName(name), JSON.stringify(value))
  } catch {
    // It is a convenience only.
  }
}

export const keepChoice = (choice: Kept['choices']) => keep('choices', { ...readKept('choices'), ...choice })
