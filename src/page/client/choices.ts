import { element } from './words.ts'

const details = element('pictures')
const form = details.querySelector('form') as HTMLFormElement

export function setUpChoices(): void {
  form.addEventListener('submit', event => event.preventDefault())
  document.addEventListener('change', event => {
    if ((event.target as Element).id === 'destination') showAllowed()
  })
  showAllowed()
}

/** Shows of the wishes what the chosen destination allows. */
export function showAllowed(): void {
  const allowed = chosen()?.dataset['pictures']?.split(' ') ?? []
  for (const label of form.querySelectorAll<HTMLElement>('[data-wish]')) {
    label.hidden = !allowed.includes(label.dataset['wish'] ?? '')
    for (const field of label.querySelectorAll<HTMLInputElement>('input, select'))
      field.disabled = label.hidden
  }
  details.hidden = form.querySelector('label:not([hidden])') === null
}

/** What the visitor chose, as a request says it; empty or from the question mark on. What is no valid number is left out. */
export function chosenQuery(): string {
  const query = new URLSearchParams(chosen()?.value)
  for (const field of form.querySelectorAll<HTMLInputElement>('input:enabled, select:enabled'))
    if (field.value !== '' && field.checkValidity() && (field.type !== 'checkbox' || field.checked))
      query.set(field.name, field.value)
  return query.size > 0 ? `?${query}` : ''
}

function chosen(): HTMLOptionElement | undefined {
  return document.querySelector<HTMLSelectElement>('#destination')?.selectedOptions[0]
}
