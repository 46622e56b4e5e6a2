import { type DestinationChoice, destinationQuery, type PageFacts } from './facts.ts'
import { type Html, html } from './html.ts'
import type { Words } from './words-en.ts'

const FILE: Html = html`<svg viewBox="0 0 24 24" aria-hidden="true"><path d="M14 3H7a2 2 0 0 0-2 2v14a2 2 0 0 0 2 2h10a2 2 0 0 0 2-2V8zm0 0v5h5" fill="none" stroke="currentColor" stroke-width="1.5" stroke-linejoin="round"/></svg>`

/** The upload form. Without JavaScript, the style hides it and shows a note instead. */
export function renderUploader(facts: PageFacts): Html {
  const { words, fileSize } = facts
  const texts = words.upload
  return html`<section id="upload">
<h1>${words.headline}</h1>
<noscript><p>${texts.noScript}</p></noscript>
<div class="panel">
${renderVisitor(facts)}
${!facts.visitor.admittedBy && !facts.visitor.isKeyUseless && renderKey(facts)}
<div id="drop" data-limit="${fileSize}">
<p class="mouse"><strong>${texts.drop}</strong></p>
<p><span class="mouse">${texts.dropMore}</span> <input id="files" class="unseen" type="file" multiple><label for="files" class="button">${texts.choose}</label></p>
<p class="muted">${texts.limits.replace('{size}', showSize(fileSize))}</p>
</div>
${renderPictures(facts)}
<div id="tools" hidden>
<p id="tally" class="muted"></p>
<progress id="total" max="1" value="0" aria-label="${texts.total}" hidden></progress>
<fieldset id="formats">
<legend class="unseen">${texts.formats}</legend>
${FORMATS.map(renderFormat)}</fieldset>
<p id="list-tools" hidden>
<button id="copy-all" type="button" disabled>${texts.copyAll}</button>
<button id="retry-all" type="button" hidden>${texts.retryAll}</button>
<button id="clear" type="button">${texts.clear}</button>
</p>
</div>
<section id="uploads" aria-label="${texts.uploads}" hidden>
<ol></ol>
</section>
<details id="recent" hidden>
<summary>${words.recent.title}</summary>
<div class="line">
<input id="recent-text" type="search" maxlength="200" aria-label="${words.recent.search}" placeholder="${words.recent.search}" autocomplete="off">
<button id="clear-recent" type="button">${words.recent.clear}</button>
</div>
<p id="recent-problem" class="muted" hidden></p>
<p id="recent-none" class="muted" hidden>${words.recent.none}</p>
<ol></ol>
</details>
<form id="url">
<label for="url-text">${texts.url}</label>
<div class="line">
<input id="url-text" type="url" inputmode="url" placeholder="https://" autocomplete="off" required>
<button>${texts.send}</button>
</div>
</form>
${facts.visitor.admittedBy !== undefined && renderKey(facts)}
</div>
<template id="row"><li>
<span class="thumb">${FILE}</span>
<div class="info">
<p class="name"><bdi></bdi> <small></small></p>
<progress max="1"></progress>
<p class="state"></p>
<p class="reason" lang="en"></p>
<p class="detail"></p>
<div class="link" role="textbox" aria-readonly="true" tabindex="0"></div>
</div>
<div class="actions"></div>
</li></template>
</section>`
}

/**
 * The image options. The script shows those that the chosen destination allows. Their names are the query parameters of
 * the request.
 */
function renderPictures({ words: { images: texts }, pictureFormats }: PageFacts): Html {
  const number = (name: string, max: number) =>
    html`<input name="${name}" type="number" inputmode="numeric" min="1" max="${max}" placeholder="${texts.unchanged}">`
  return html`<details id="pictures" hidden>
<summary>${texts.title}</summary>
<form>
<label data-option="format">${texts.format} <select name="format">
<option value="">${texts.unchanged}</option>
${pictureFormats.map(format => html`<option value="${format}">${format.toUpperCase()}</option>\n`)}</select></label>
<label data-option="quality">${texts.quality} ${number('quality', 100)}</label>
<label data-option="size">${texts.width} ${number('width', 65_535)}</label>
<label data-option="size">${texts.height} ${number('height', 65_535)}</label>
<label data-option="strip" class="check"><input name="strip" type="checkbox" value="1"> ${texts.strip}</label>
</form>
</details>`
}

/** The key field. It is at the top while a key is missing, and at the bottom otherwise. */
function renderKey({ words, visitor }: PageFacts): Html {
  const texts = words.upload
  return html`<details id="key"${['loopback', 'proxy'].includes(visitor.admittedBy ?? '') && HIDDEN}${!visitor.admittedBy && OPEN}>
<summary>${texts.key}</summary>
<form id="key-form">
<div class="line">
<input id="key-text" type="password" aria-label="${texts.key}" autocomplete="off" autocapitalize="off" spellcheck="false" required>
<button>${texts.useKey}</button>
</div>
<label class="check"><input id="key-keep" type="checkbox"> ${texts.keepKey}</label>
</form>
</details>`
}

const HIDDEN: Html = html` hidden`
const OPEN: Html = html` open`

const FORMATS = [
  ['url', 'URL'],
  ['markdown', 'Markdown'],
  ['html', 'HTML'],
  ['bbcode', 'BBCode'],
] as const

function renderFormat([value, label]: readonly [string, string], index: number): Html {
  return html`<label><input type="radio" name="format" value="${value}"${index === 0 && html` checked`}><span>${label}</span></label>\n`
}

/** How the server identified the visitor. When a key is entered, the script loads the page again and replaces this part. */
function renderVisitor({ words, visitor }: PageFacts): Html {
  const texts = words.upload
  if (!visitor.admittedBy) {
    const failures: Readonly<Record<string, string>> = words.script.failures
    const isKeyNeeded = visitor.code === 'unauthorized' && !visitor.isKeyUseless
    const title = visitor.code === 'unauthorized' && !isKeyNeeded ? texts.unclear : failures[visitor.code]
    return html`<div id="visitor" data-code="${visitor.code}">
<p><strong>${title ?? visitor.code}</strong></p>
${
  isKeyNeeded
    ? html`<p class="muted">${texts.askForKey}</p>
<details><summary>${texts.forOwner}</summary>
<p class="muted" lang="en">${visitor.message}</p></details>`
    : html`<p class="muted" lang="en">${visitor.message}</p>`
}
</div>`
  }
  const { admittedBy, choices, hasHistory } = visitor
  return html`<div id="visitor" data-admitted="${admittedBy}"${hasHistory && html` data-history`}>
<p class="admitted">${texts.admitted[admittedBy].replace('{as}', () => (visitor.user ? ` (${visitor.user})` : ''))}</p>
<p class="choice"><label for="destination">${texts.destination}</label>
<select id="destination">
${choices.map(
  choice =>
    html`<option value="${destinationQuery(choice)}" data-pictures="${choice.pictures.join(' ')}" data-expiry="${offeredTimes(choice, words)}"${choice.isDefault && html` selected`}>${choice.picbed} / ${choice.configName}${choice.isDefault ? ` (${texts.default})` : ''}</option>\n`,
)}</select></p>
<p id="expiry" class="choice" hidden><label for="expires">${texts.expiry}</label>
<select id="expires"></select></p>
</div>`
}

/** The values of `expires` with their names, as JSON. The first is the default of the destination. */
function offeredTimes({ expiry }: DestinationChoice, { lang, upload: texts }: Words): string {
  const units: Readonly<Record<string, string>> = { m: 'minute', h: 'hour', d: 'day' }
  const name = (time: string) => {
    const unit = units[time.slice(-1)]
    if (time === 'never' || unit === undefined) return texts.never
    const format = new Intl.NumberFormat(lang, { style: 'unit', unit, unitDisplay: 'long' })
    return format.format(Number.parseInt(time, 10))
  }
  return JSON.stringify(
    expiry.map((time, at) => (at === 0 ? ['', `${name(time)} (${texts.default})`] : [time, name(time)])),
  )
}

function showSize(bytes: number): string {
  const units = ['bytes', 'KB', 'MB', 'GB', 'TB']
  const step = Math.min(units.length - 1, Math.floor(Math.log2(Math.max(1, bytes)) / 10))
  return `${Number((bytes / 1024 ** step).toFixed(1))} ${units[step]}`
}
