import { credentialFor } from '../examples.ts'
import { destinationQuery, type Me, type Visitor } from '../facts.ts'
import { renderGuide } from '../guide.ts'
import { html } from '../html.ts'
import { showAllowed, showFormats } from './choices.ts'
import { addCopyButtons } from './copy.ts'
import { hasKey, keyHeaders } from './key.ts'
import { showSize } from './row.ts'
import { savedChoices } from './saved.ts'
import { urlOf } from './send.ts'
import { announce, element, fill, texts, titleOf, words } from './words.ts'

/** Last response of the server. Undefined before the first. */
export let me: Me | undefined

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
    if (isOwnKey) announce(words.keyAccepted)
  } else if (!answer) showProblem(words.unreachable)
  else if (hasKey()) showProblem(visitor?.code === 'unauthorized' ? words.keyRefused : '')
  return isAdmitted
}

async function fetchMe(): Promise<Me | undefined> {
  try {
    // The second header tells the server that the page sent the key, and not a proxy in front of it.
    const headers = hasKey() ? { ...keyHeaders(), 'X-Requested-With': 'XMLHttpRequest' } : {}
    const { success, result } = await (await fetch(urlOf('page/me'), { headers, cache: 'no-store' })).json()
    return success === true ? result : undefined
  } catch {
    return undefined
  }
}

function show(answer: Me): void {
  me = answer
  const { visitor, base, fileSize } = answer
  const place = element('visitor')
  place.classList.remove('wrong')
  place.innerHTML = (visitor.admittedBy ? renderAdmitted(visitor) : renderRefused(visitor)).html
  element('limit').textContent = texts.upload.limits.replace('{size}', showSize(fileSize))
  showFormats(answer.pictureFormats)
  showAllowed()
  const { choices, signIn } = visitor.admittedBy ? visitor : {}
  showGuide({ base, credential: credentialFor(visitor, base), signIn, choices })
}

/** Renders the documentation for this visitor. Sections that are open stay open. */
function showGuide(facts: Omit<Parameters<typeof renderGuide>[0], 'words' | 'root'>): void {
  const guide = element('guide')
  const open = new Set([...guide.querySelectorAll('details[open]')].map(({ id }) => id))
  guide.innerHTML = renderGuide({ words: texts, root: urlOf('').href, ...facts }).html
  for (const section of guide.querySelectorAll('details')) section.open = open.has(section.id)
  addCopyButtons()
}

function renderRefused({ code, message, isKeyUseless }: Visitor & { admittedBy?: never }) {
  const { askForKey, unclear, forOwner } = texts.upload
  const isKeyNeeded = code === 'unauthorized' && !isKeyUseless
  const title = code === 'unauthorized' && !isKeyNeeded ? unclear : titleOf(code)
  return html`<p><strong>${title ?? code}</strong></p>
${
  isKeyNeeded
    ? html`<p class="muted">${askForKey}</p>
<details><summary>${forOwner}</summary>
<p class="muted" lang="en">${message}</p></details>`
    : html`<p class="muted" lang="en">${message}</p>`
}`
}

function renderAdmitted({ admittedBy, user, choices }: Visitor & { admittedBy: string }) {
  const { admitted, destination, default: standard, expiry } = texts.upload
  const last = savedChoices().destination
  const isKnown = choices.some(choice => destinationQuery(choice) === last)
  return html`<p class="admitted">${fill(admitted[admittedBy], { as: user === undefined ? '' : ` (${user})` })}</p>
<p class="choice"><label for="destination">${destination}</label>
<select id="destination">
${choices.map(choice => {
  const { picbed, configName, isDefault, pictures, expiry } = choice
  const query = destinationQuery(choice)
  const isChosen = isKnown ? query === last : isDefault
  return html`<option value="${query}" data-pictures="${pictures.join(' ')}" data-expiry="${expiry.join(' ')}"${isChosen && html` selected`}>${picbed} / ${configName}${isDefault ? ` (${standard})` : ''}</option>\n`
})}</select></p>
<p id="expiry" class="choice" hidden><label for="expires">${expiry}</label>
<select id="expires"></select></p>`
}

/** @param text replaces the current message, unless it is empty */
function showProblem(text: string): void {
  const visitor = element('visitor')
  const title = visitor.querySelector('strong, .admitted, .muted')
  if (title && text) title.textContent = text
  visitor.classList.add('wrong')
  announce(title?.textContent ?? '')
}
