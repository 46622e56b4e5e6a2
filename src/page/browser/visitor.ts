import { type DestinationChoice, destinationQuery, type Me, type Visitor } from '../facts.ts'
import { credentialFor, renderGuide } from '../guide.ts'
import { html } from '../html.ts'
import { addCopyButtons } from './copy.ts'
import {
  announce,
  element,
  fill,
  keep,
  keepChoice,
  part,
  readKept,
  showSize,
  titleOf,
  urlOf,
  words,
} from './page.ts'

/** Last response of the server. Undefined before the first. */
export let me: Me | undefined

const keyField = element<HTMLInputElement>('key-text')
const keepKey = element<HTMLInputElement>('key-keep')
let key = readKept('key') ?? ''

const images = element('pictures')
const imageOptions = part<HTMLFormElement>(images, 'form')

/** Sets up the field of the key, and the options of the next uploads. @param onKey called when the visitor enters a key */
export function setUpVisitor(onKey: () => void): void {
  keyField.value = key
  keepKey.checked = key !== ''
  const save = () => keep('key', keepKey.checked && key !== '' ? key : undefined)
  keepKey.addEventListener('change', save)
  part(element('key'), 'form').addEventListener('submit', event => {
    event.preventDefault()
    key = keyField.value.trim()
    save()
    onKey()
  })
  imageOptions.addEventListener('submit', event => event.preventDefault())
  document.addEventListener('change', ({ target }) => {
    if (!(target instanceof HTMLSelectElement) || target.id !== 'destination') return
    keepChoice({ destination: target.value })
    showAllowed()
  })
}

/** The upload key as a header. It is never put into a URL, since URLs are logged; `Authorization` may belong to a proxy. */
export function keyHeaders(): Record<string, string> {
  // Header values are bytes, while a key may contain any characters.
  const bytes = new TextEncoder().encode(key)
  return key === '' ? {} : { 'X-Upload-Key': String.fromCharCode(...bytes) }
}

/**
 * Asks the server what the visitor may do, and shows it.
 *
 * @param isOwnKey whether the visitor has just entered a key
 * @returns whether the visitor may upload
 */
export async function askServer(isOwnKey = false): Promise<boolean> {
  const answer = await fetchMe()
  if (answer) show(answer)
  const visitor = answer?.visitor
  const isAdmitted = visitor?.admittedBy !== undefined
  const field = element<HTMLDetailsElement>('key')
  field.hidden = isAdmitted
    ? ['loopback', 'proxy'].includes(visitor.admittedBy)
    : visitor?.isKeyUseless === true
  field.open = !isAdmitted
  if (isAdmitted) {
    if (isOwnKey) announce(words.key.accepted)
  } else if (!answer) showProblem(words.state.unreachable)
  else if (key !== '') showProblem(visitor?.code === 'unauthorized' ? words.key.refused : '')
  return isAdmitted
}

async function fetchMe(): Promise<Me | undefined> {
  try {
    // The second header tells the server that the page sent the key, and not a proxy in front of it.
    const headers = key === '' ? {} : { ...keyHeaders(), 'X-Requested-With': 'XMLHttpRequest' }
    const { success, result } = await (await fetch(urlOf('page/me'), { headers, cache: 'no-store' })).json()
    return success === true ? result : undefined
  } catch {
    return undefined
  }
}

/** @param text replaces the current message, unless it is empty */
function showProblem(text: string): void {
  const place = element('visitor')
  const title = place.querySelector('strong, .admitted, .muted')
  if (title && text) title.textContent = text
  place.classList.add('wrong')
  announce(title?.textContent ?? '')
}

function show(answer: Me): void {
  me = answer
  const { visitor, base, fileSize, pictureFormats } = answer
  const place = element('visitor')
  place.classList.remove('wrong')
  place.innerHTML = (visitor.admittedBy ? renderAdmitted(visitor) : renderRefused(visitor)).html
  element('limit').textContent = fill(words.upload.limits, { size: showSize(fileSize) })
  const field = part<HTMLSelectElement>(images, 'select')
  const format = field.value
  const formats = pictureFormats.map(one => new Option(one.toUpperCase(), one))
  field.replaceChildren(new Option(words.images.unchanged, ''), ...formats)
  field.value = format
  showAllowed()
  const { choices, signIn } = visitor.admittedBy ? visitor : {}
  showGuide({ base, credential: credentialFor(visitor, base), signIn, choices })
}

function renderRefused({ code, message, isKeyUseless }: Visitor & { admittedBy?: never }) {
  const { askForKey, unclear, forOwner } = words.upload
  const reason = html`<p class="muted" lang="en">${message}</p>`
  if (code !== 'unauthorized') return html`<p><strong>${titleOf(code)}</strong></p>${reason}`
  if (isKeyUseless) return html`<p><strong>${unclear}</strong></p>${reason}`
  return html`<p><strong>${titleOf(code)}</strong></p>
<p class="muted">${askForKey}</p>
<details><summary>${forOwner}</summary>
${reason}</details>`
}

function renderAdmitted({ admittedBy, user, choices }: Visitor & { admittedBy: string }) {
  const { admitted, destination, default: standard, expiry } = words.upload
  const last = readKept('choices')?.destination
  const isKnown = choices.some(choice => destinationQuery(choice) === last)
  return html`<p class="admitted">${fill(admitted[admittedBy], { as: user === undefined ? '' : ` (${user})` })}</p>
<p class="choice"><label for="destination">${destination}</label>
<select id="destination">
${choices.map(choice => {
  const query = destinationQuery(choice)
  const isChosen = isKnown ? query === last : choice.isDefault
  return html`<option value="${query}"${isChosen && html` selected`}>${choice.picbed} / ${choice.configName}${choice.isDefault && ` (${standard})`}</option>\n`
})}</select></p>
<p id="expiry" class="choice" hidden><label for="expires">${expiry}</label>
<select id="expires"></select></p>`
}

/** Renders the documentation for this visitor. Sections that are open stay open. */
function showGuide(facts: Omit<Parameters<typeof renderGuide>[0], 'words' | 'root'>): void {
  const guide = element('guide')
  const open = new Set([...guide.querySelectorAll('details[open]')].map(({ id }) => id))
  guide.innerHTML = renderGuide({ words, root: urlOf('').href, ...facts }).html
  for (const section of guide.querySelectorAll('details')) section.open = open.has(section.id)
  addCopyButtons()
}

const selectOf = (id: string) => document.querySelector<HTMLSelectElement>(`#${id}`)

/** The destination that the visitor has chosen. Undefined if they may not upload. */
export function chosenDestination(): DestinationChoice | undefined {
  const visitor = me?.visitor
  return visitor?.admittedBy && visitor.choices[selectOf('destination')?.selectedIndex ?? -1]
}

/** Shows the image options and expiry times that the chosen destination allows, and hides the others. */
function showAllowed(): void {
  const { pictures = [], expiry = [] } = chosenDestination() ?? {}
  for (const label of imageOptions.querySelectorAll<HTMLElement>('[data-option]')) {
    label.hidden = !pictures.includes(label.dataset['option'] ?? '')
    part<HTMLInputElement>(label, 'input, select').disabled = label.hidden
  }
  images.hidden = pictures.length === 0
  const field = selectOf('expires')
  if (!field) return
  // The first time is the default of the destination, which needs no parameter.
  const [standard, ...others] = expiry
  field.replaceChildren(
    new Option(`${nameOf(standard ?? '')} (${words.upload.default})`, ''),
    ...others.map(time => new Option(nameOf(time), time)),
  )
  element('expiry').hidden = expiry.length === 0
}

/** The name of an expiry time such as `7d` or `never`. */
function nameOf(time: string): string {
  const units: Readonly<Record<string, string>> = { s: 'second', m: 'minute', h: 'hour', d: 'day' }
  const unit = units[time.slice(-1)]
  if (unit === undefined) return words.upload.never
  const format = new Intl.NumberFormat(words.lang, { style: 'unit', unit, unitDisplay: 'long' })
  return format.format(Number.parseInt(time, 10))
}

/** The chosen options as the query of an upload. Invalid numbers are omitted. */
export function chosenQuery(): URLSearchParams {
  const query = new URLSearchParams(selectOf('destination')?.value)
  for (const field of imageOptions.querySelectorAll<HTMLInputElement>('input:enabled, select:enabled'))
    if (field.value !== '' && field.checkValidity() && (field.type !== 'checkbox' || field.checked))
      query.set(field.name, field.value)
  const expires = selectOf('expires')?.value
  if (expires) query.set('expires', expires)
  return query
}
