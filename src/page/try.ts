import { type PageFacts, queryOf } from './facts.ts'
import { type Html, html } from './html.ts'

const FILE: Html = html`<svg viewBox="0 0 24 24" aria-hidden="true"><path d="M14 3H7a2 2 0 0 0-2 2v14a2 2 0 0 0 2 2h10a2 2 0 0 0 2-2V8zm0 0v5h5" fill="none" stroke="currentColor" stroke-width="1.5" stroke-linejoin="round"/></svg>`

/** The uploader. Without scripts the style hides it but for a word about that. */
export function renderTry(facts: PageFacts): Html {
  const { words, fileSize } = facts
  const say = words.try
  return html`<section id="try">
<h1>${words.headline}</h1>
<noscript><p>${say.noScript}</p></noscript>
<div class="panel">
${renderVisitor(facts)}
${!facts.visitor.admittedBy && renderKey(facts)}
<div id="drop" data-limit="${fileSize}">
<p><strong>${say.drop}</strong></p>
<p>${say.dropMore} <input id="files" class="unseen" type="file" multiple><label for="files" class="button">${say.choose}</label></p>
<p class="muted">${say.limits.replace('{size}', showSize(fileSize))}</p>
</div>
${renderPictures(facts)}
<section id="uploads" aria-label="${say.uploads}" hidden>
<ol></ol>
<div class="tools">
<p id="tally" class="muted"></p>
<button id="copy-all" type="button" disabled>${say.copyAll}</button>
<button id="clear" type="button">${say.clear}</button>
</div>
</section>
<fieldset id="formats" hidden>
<legend>${say.formats}</legend>
${FORMATS.map(renderFormat)}</fieldset>
<details id="lately" hidden>
<summary>${words.lately.title}</summary>
<div class="line">
<input id="lately-text" type="search" maxlength="200" aria-label="${words.lately.search}" placeholder="${words.lately.search}" autocomplete="off">
<button id="forget" type="button">${words.lately.forget}</button>
</div>
<p id="lately-problem" class="muted" hidden></p>
<p id="lately-none" class="muted" hidden>${words.lately.none}</p>
<ol></ol>
</details>
<form id="url">
<label for="url-text">${say.url}</label>
<div class="line">
<input id="url-text" type="url" inputmode="url" placeholder="https://" autocomplete="off" required>
<button>${say.send}</button>
</div>
</form>
${facts.visitor.admittedBy !== undefined && renderKey(facts)}
</div>
<template id="row"><li>
<span class="thumb">${FILE}</span>
<div class="what">
<p class="name"><bdi></bdi> <small></small></p>
<progress max="1"></progress>
<p class="state"></p>
<p class="reason" lang="en"></p>
<p class="detail"></p>
<input class="link" readonly>
</div>
<div class="actions"></div>
</li></template>
</section>`
}

/**
 * What an upload may ask for of its pictures. The script shows of it what the chosen destination allows; names are those
 * of the request's query.
 */
function renderPictures({ words: { pictures: say }, pictureFormats }: PageFacts): Html {
  const number = (name: string, max: number) =>
    html`<input name="${name}" type="number" inputmode="numeric" min="1" max="${max}" placeholder="${say.asItIs}">`
  return html`<details id="pictures" hidden>
<summary>${say.title}</summary>
<form>
<label data-wish="format">${say.format} <select name="format">
<option value="">${say.asItIs}</option>
${pictureFormats.map(format => html`<option value="${format}">${format.toUpperCase()}</option>\n`)}</select></label>
<label data-wish="quality">${say.quality} ${number('quality', 100)}</label>
<label data-wish="size">${say.width} ${number('width', 65_535)}</label>
<label data-wish="size">${say.height} ${number('height', 65_535)}</label>
<label data-wish="strip" class="check"><input name="strip" type="checkbox" value="1"> ${say.strip}</label>
</form>
</details>`
}

/** At the top while a key is what is missing, else below what is used more. */
function renderKey({ words, visitor }: PageFacts): Html {
  const say = words.try
  return html`<details id="key"${['loopback', 'proxy'].includes(visitor.admittedBy ?? '') && HIDDEN}${!visitor.admittedBy && OPEN}>
<summary>${say.key}</summary>
<form id="key-form">
<div class="line">
<input id="key-text" type="password" aria-label="${say.key}" autocomplete="off" autocapitalize="off" spellcheck="false" required>
<button>${say.useKey}</button>
</div>
<label class="check"><input id="key-keep" type="checkbox"> ${say.keepKey}</label>
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

/** Who the visitor is to the server. The script asks for the page again with a key, and takes this from it. */
function renderVisitor({ words, visitor }: PageFacts): Html {
  const say = words.try
  if (!visitor.admittedBy) {
    const failures: Readonly<Record<string, string>> = words.script.failures
    return html`<div id="visitor" data-code="${visitor.code}">
<p><strong>${failures[visitor.code] ?? visitor.code}</strong></p>
${
  visitor.code === 'unauthorized'
    ? html`<p class="muted">${say.whoHasKey}</p>
<details><summary>${say.forOwner}</summary>
<p class="muted" lang="en">${visitor.message}</p></details>`
    : html`<p class="muted" lang="en">${visitor.message}</p>`
}
</div>`
  }
  const { admittedBy, choices, hasHistory } = visitor
  return html`<div id="visitor" data-admitted="${admittedBy}"${hasHistory && html` data-history`}>
<p class="admitted">${say.admitted[admittedBy]}</p>
<p class="choice"><label for="destination">${say.destination}</label>
<select id="destination">
${choices.map(
  choice =>
    html`<option value="${queryOf(choice)}" data-pictures="${choice.pictures.join(' ')}"${choice.isDefault && html` selected`}>${choice.picbed} / ${choice.configName}${choice.isDefault ? ` (${say.standard})` : ''}</option>\n`,
)}</select></p>
</div>`
}

function showSize(bytes: number): string {
  const units = ['bytes', 'KB', 'MB', 'GB', 'TB']
  const step = Math.min(units.length - 1, Math.floor(Math.log2(Math.max(1, bytes)) / 10))
  return `${Number((bytes / 1024 ** step).toFixed(1))} ${units[step]}`
}
