import { announce, makeButton, words } from './page.ts'

/**
 * Copies a text to the clipboard and shows the result on the button.
 *
 * @param source element that shows the text; it is selected if the browser blocks copying
 */
export async function copyText(text: string, button: HTMLButtonElement, source?: HTMLElement): Promise<void> {
  const done = await write(text)
  announce(done ? words.link.copied : words.link.copyFailed)
  if (!done && source) getSelection()?.selectAllChildren(source)
  button.dataset['text'] ??= button.textContent ?? ''
  button.textContent = done ? words.link.copied : 'Ctrl+C'
  setTimeout(() => {
    button.textContent = button.dataset['text'] ?? ''
  }, 1500)
}

/** @returns whether the clipboard has the text now */
export async function write(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text)
    return true
  } catch {
    return writeBySelection(text)
  }
}

/** Without TLS, browsers offer pages no clipboard API: a selection and the old copy command still work. */
function writeBySelection(text: string): boolean {
  const focused = document.activeElement
  const field = document.createElement('textarea')
  field.value = text
  field.className = 'unseen'
  document.body.append(field)
  field.select()
  const done = document.execCommand('copy')
  field.remove()
  if (focused instanceof HTMLElement) focused.focus()
  return done
}

/** Adds a copy button to every example. Screen readers call it by the text or heading above. */
export function addCopyButtons(): void {
  for (const block of document.querySelectorAll<HTMLElement>('.copy')) {
    const above = block.previousElementSibling
    const title = above?.previousElementSibling?.matches('h3') ? above.previousElementSibling : above
    const code = block.querySelector('code')
    if (!code) continue
    const button = makeButton(
      words.link.copy,
      title?.textContent ?? '',
      () => void copyText(code.textContent, button, code),
    )
    block.append(button)
  }
}
