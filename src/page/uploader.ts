import { type Html, html } from './html.ts'
import type { Words } from './words-en.ts'

const FILE: Html = html`<svg viewBox="0 0 24 24" aria-hidden="true"><path d="M14 3H7a2 2 0 0 0-2 2v14a2 2 0 0 0 2 2h10a2 2 0 0 0 2-2V8zm0 0v5h5" fill="none" stroke="currentColor" stroke-width="1.5" stroke-linejoin="round"/></svg>`

/** The upload form, for every visitor. Without JavaScript, the style hides it and shows a note instead. */
export function renderUploader(words: Words): Html {
  const texts = words.upload
  return html`<section id="upload">
<h1>${words.headline}</h1>
<noscript><p>${texts.noScript}</p></noscript>
<div class="panel">
<div id="visitor"><p class="muted">${words.script.loading}</p></div>
${renderKey(words)}
<div id="drop">
<p class="mouse"><strong>${texts.drop}</strong></p>
<p><span class="mouse">${texts.dropMore}</span> <input id="files" class="unseen" type="file" multiple><label for="files" class="button">${texts.choose}</label></p>
<p id="limit" class="muted"></p>
</div>
${renderPictures(words)}
<div id="tools" hidden>
<p id="tally" class="muted"></p>
<progress id="total" max="1" value="0" aria-label="${texts.total}" hidden></progress>
<fieldset id="formats">
<legend class="unseen">${texts.formats}</legend>
${FORMATS.map(renderFormat)}</fieldset>
<label class="check"><input id="auto-copy" type="checkbox"> ${texts.autoCopy}</label>
<p id="list-tools" hidden>
<button id="copy-all" type="button" disabled>${texts.copyAll}</button>
<button id="retry-all" type="button" hidden>${texts.retryAll}</button>
<button id="clear" type="button">${texts.clear}</button>
</p>
</div>
<section id="uploads" aria-label="${texts.uploads}" hidden>
<ol></ol>
</section>
<p id="local" class="note" hidden></p>
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
</div>
<dialog id="qr"><p><bdi></bdi></p><div class="code"></div><form method="dialog"><button>${words.script.close}</button></form></dialog>
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
function renderPictures({ images: texts }: Words): Html {
  const number = (name: string, max: number) =>
    html`<input name="${name}" type="number" inputmode="numeric" min="1" max="${max}" placeholder="${texts.unchanged}">`
  return html`<details id="pictures" hidden>
<summary>${texts.title}</summary>
<form>
<label data-option="format">${texts.format} <select name="format">
<option value="">${texts.unchanged}</option></select></label>
<label data-option="quality">${texts.quality} ${number('quality', 100)}</label>
<label data-option="size">${texts.width} ${number('width', 65_535)}</label>
<label data-option="size">${texts.height} ${number('height', 65_535)}</label>
<label data-option="stripMetadata" class="check"><input name="stripMetadata" type="checkbox" value="1"> ${texts.stripMetadata}</label>
</form>
</details>`
}

/** The key field. The script opens it while a key is missing, and hides it where none is needed. */
function renderKey({ upload: texts }: Words): Html {
  const { page, tab, device } = texts.keep
  return html`<details id="key" hidden>
<summary>${texts.key}</summary>
<form id="key-form">
<div class="line">
<input id="key-text" type="password" aria-label="${texts.key}" autocomplete="off" autocapitalize="off" spellcheck="false" required>
<button>${texts.useKey}</button>
</div>
<p class="choice"><label for="key-keep">${texts.keepKey}</label>
<select id="key-keep">
<option value="page">${page}</option>
<option value="tab">${tab}</option>
<option value="device">${device}</option>
</select></p>
</form>
</details>`
}

const FORMATS = [
  ['url', 'URL'],
  ['markdown', 'Markdown'],
  ['html', 'HTML'],
  ['bbcode', 'BBCode'],
] as const

function renderFormat([value, label]: readonly [string, string], index: number): Html {
  return html`<label><input type="radio" name="format" value="${value}"${index === 0 && html` checked`}><span>${label}</span></label>\n`
}
