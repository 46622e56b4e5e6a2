import { element } from './words.ts'

const details = element('pictures')
// The document is made by uploader.ts, which always contains this element, so the cast is safe.
const form = details.querySelector('form') as HTMLFormElement

export function setUpChoices(): void {
  form.addEventListener('submit', event => event.preventDefault())
  document.addEventListener('change', event => {
    // Only elements send `change` events.
    if ((event.target as Element).id === 'destination') showAllowed()
  })
  showAllowed()
}

/** Shows the image options and expiry times that the chosen destination allows, and hides the others. */
export function showAllowed(): void {
  const allowed = chosen()?.dataset['pictures']?.split(' ') ?? []
  for (const label of form.querySelectorAll<HTMLElement>('[data-option]')) {
    label.hidden = !allowed.includes(label.dataset['option'] ?? '')
    for (const field of label.querySelectorAll<HTMLInputElement>('input, select'))
      field.disabled = label.hidden
  }
  details.hidden = form.querySelector('label:not([hidden])') === null
  showExpiry()
}

/** Fills the list of expiry times. The server has already translated their names. */
function showExpiry(): void {
  const field = document.querySelector<HTMLSelectElement>('#expires')
  if (!field) return
  const offered: [string, string][] = JSON.parse(chosen()?.dataset['expiry'] ?? '[]')
  field.replaceChildren(...offered.map(([value, text]) => new Option(text, value)))
  element('expiry').hidden = offered.length === 0
}

/** The chosen options as the query of an upload: empty, or with its question mark. Invalid numbers are omitted. */
export function chosenQuery(): string {
  const query = new URLSearchParams(chosen()?.value)
  for (const field of form.querySelectorAll<HTMLInputElement>('input:enabled, select:enabled'))
    if (field.value !== '' && field.checkValidity() && (field.type !== 'checkbox' || field.checked))
      query.set(field.name, field.value)
  const expires = document.querySelector<HTMLSelectElement>('#expires')?.value
  if (expires) query.set('expires', expires)
  return query.size > 0 ? `?${query}` : ''
}

function chosen(): HTMLOptionElement | undefined {
  return document.querySelector<HTMLSelectElement>('#destination')?.selectedOptions[0]
}
