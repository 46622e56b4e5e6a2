import { saveChoice } from './saved.ts'
import { element, texts } from './words.ts'

const details = element('pictures')
// The document is made by uploader.ts, which always contains this element, so the cast is safe.
const form = details.querySelector('form') as HTMLFormElement

export function setUpChoices(): void {
  form.addEventListener('submit', event => event.preventDefault())
  document.addEventListener('change', ({ target }) => {
    if (!(target instanceof HTMLSelectElement) || target.id !== 'destination') return
    saveChoice({ destination: target.value })
    showAllowed()
  })
}

/** Fills the list of image formats. The chosen one stays. */
export function showFormats(formats: readonly string[]): void {
  const field = form.querySelector('select') as HTMLSelectElement
  const chosen = field.value
  const options = formats.map(format => new Option(format.toUpperCase(), format))
  field.replaceChildren(new Option(texts.images.unchanged, ''), ...options)
  field.value = chosen
}

/** Shows the image options and expiry times that the chosen destination allows, and hides the others. */
export function showAllowed(): void {
  const allowed = allowedOptions()
  for (const label of form.querySelectorAll<HTMLElement>('[data-option]')) {
    label.hidden = !allowed.includes(label.dataset['option'] ?? '')
    for (const field of label.querySelectorAll<HTMLInputElement>('input, select'))
      field.disabled = label.hidden
  }
  details.hidden = form.querySelector('label:not([hidden])') === null
  showExpiry()
}

/** The image options that the chosen destination allows. */
export function allowedOptions(): readonly string[] {
  return chosen()?.dataset['pictures']?.split(' ') ?? []
}

/** Fills the list of expiry times. The first is the default of the destination, which needs no parameter. */
function showExpiry(): void {
  const field = document.querySelector<HTMLSelectElement>('#expires')
  if (!field) return
  const offered = chosen()?.dataset['expiry']?.split(' ').filter(Boolean) ?? []
  const standard = texts.upload.default
  field.replaceChildren(
    ...offered.map((time, at) =>
      at === 0 ? new Option(`${nameOf(time)} (${standard})`, '') : new Option(nameOf(time), time),
    ),
  )
  element('expiry').hidden = offered.length === 0
}

/** The name of an expiry time such as `7d` or `never`. */
function nameOf(time: string): string {
  const units: Readonly<Record<string, string>> = { s: 'second', m: 'minute', h: 'hour', d: 'day' }
  const unit = units[time.slice(-1)]
  if (time === 'never' || unit === undefined) return texts.upload.never
  const format = new Intl.NumberFormat(texts.lang, { style: 'unit', unit, unitDisplay: 'long' })
  return format.format(Number.parseInt(time, 10))
}

/** The chosen options as the query of an upload. Invalid numbers are omitted. */
export function chosenQuery(): URLSearchParams {
  const query = new URLSearchParams(chosen()?.value)
  for (const field of form.querySelectorAll<HTMLInputElement>('input:enabled, select:enabled'))
    if (field.value !== '' && field.checkValidity() && (field.type !== 'checkbox' || field.checked))
      query.set(field.name, field.value)
  const expires = document.querySelector<HTMLSelectElement>('#expires')?.value
  if (expires) query.set('expires', expires)
  return query
}

function chosen(): HTMLOptionElement | undefined {
  return document.querySelector<HTMLSelectElement>('#destination')?.selectedOptions[0]
}
