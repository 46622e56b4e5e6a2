import { type GuideFacts, renderGuide } from './guide.ts'
import { type Html, html } from './html.ts'
import type { Words } from './words-en.ts'

export interface DocumentFacts extends Pick<GuideFacts, 'words' | 'base' | 'root' | 'credential'> {
  /** Version in the URL of script and style. */
  readonly version: string
}

const LOGO: Html = html`<svg viewBox="0 0 24 24" width="22" height="22" aria-hidden="true"><path d="M12 16V5m0 0L7 10m5-5 5 5M4 15v3a2 2 0 0 0 2 2h12a2 2 0 0 0 2-2v-3" fill="none" stroke="currentColor" stroke-width="2" stroke-linecap="round" stroke-linejoin="round"/></svg>`
const FILE: Html = html`<svg viewBox="0 0 24 24" aria-hidden="true"><path d="M14 3H7a2 2 0 0 0-2 2v14a2 2 0 0 0 2 2h10a2 2 0 0 0 2-2V8zm0 0v5h5" fill="none" stroke="currentColor" stroke-width="1.5" stroke-linejoin="round"/></svg>`

/**
 * The page as everyone gets it: the upload form, then the documentation. The script asks `GET page/me` for what depends on
 * the visitor. Without JavaScript only the documentation remains: the style hides the form.
 */
export function renderDocument(facts: DocumentFacts): string {
  const { words, root, version } = facts
  const assets = `${root}page/${version}`
  return html`<!doctype html>
<html lang="${words.lang}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>upload-server</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="${assets}/style.css">
<script type="module" src="${assets}/main.js"></script>
</head>
<body>
<header>
<p class="brand">${LOGO}upload-server</p>
<a href="?lang=${words.other.query}" lang="${words.other.lang}" hreflang="${words.other.lang}">${words.other.label}</a>
</header>
<main>
<h1>${words.headline}</h1>
<noscript><p>${words.upload.noScript}</p></noscript>
${renderUploader(words)}
<div id="guide">
${renderGuide(facts)}
</div>
</main>
<dialog id="qr"><p><bdi></bdi></p><div></div><form method="dialog"><button>${words.link.close}</button></form></dialog>
<p id="status" class="unseen" role="status"></p>
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
</body>
</html>
`.html
}

/** The upload form. `#visitor`, `#key`, `#pictures` and the lists are shown when the script has something for them. */
function renderUploader({ upload, key, images, recent }: Words): Html {
  return html`<div class="panel">
<div id="visitor"><p class="muted">${upload.loading}</p></div>
<details id="key" hidden>
<summary>${key.title}</summary>
<form>
<div class="line">
<input id="key-text" type="password" aria-label="${key.title}" autocomplete="off" autocapitalize="off" spellcheck="false" required>
<button>${key.use}</button>
</div>
<label class="check"><input id="key-keep" type="checkbox"> ${key.keep}</label>
</form>
</details>
<div id="drop">
<p class="mouse"><strong>${upload.drop}</strong></p>
<p><span class="mouse">${upload.dropMore}</span> <input id="files" class="unseen" type="file" multiple><label for="files" class="button">${upload.choose}</label></p>
<p id="limit" class="muted"></p>
</div>
<details id="pictures" hidden>
<summary>${images.title}</summary>
${renderImageOptions(images)}
</details>
<div id="tools" hidden>
<p id="tally" class="muted"></p>
<fieldset id="formats">
<legend class="unseen">${upload.formats}</legend>
${FORMATS.map(renderFormat)}</fieldset>
<label class="check"><input id="auto-copy" type="checkbox"> ${upload.autoCopy}</label>
<p id="list-tools" class="line" hidden>
<button id="copy-all" type="button" disabled>${upload.copyAll}</button>
<button id="retry-all" type="button" hidden>${upload.retryAll}</button>
<button id="clear" type="button">${upload.clear}</button>
</p>
</div>
<ol id="uploads" class="list" aria-label="${upload.uploads}" hidden></ol>
<p id="local" class="note" hidden></p>
<details id="recent" hidden>
<summary>${recent.title}</summary>
<div class="line">
<input id="recent-text" type="search" maxlength="200" aria-label="${recent.search}" placeholder="${recent.search}" autocomplete="off">
<button id="clear-recent" type="button">${recent.clear}</button>
</div>
<p id="recent-note" class="muted" hidden></p>
<ol class="list"></ol>
</details>
<form id="url">
<label for="url-text">${upload.url}</label>
<div class="line">
<input id="url-text" type="url" inputmode="url" placeholder="https://" autocomplete="off" required>
<button>${upload.send}</button>
</div>
</form>
</div>`
}

/**
 * The image options. The script shows those that the chosen destination allows. Their names are the query parameters of
 * the request.
 */
function renderImageOptions(texts: Words['images']): Html {
  const number = (option: string, name: 'quality' | 'width' | 'height', max: number) =>
    html`<label data-option="${option}">${texts[name]} <input name="${name}" type="number" inputmode="numeric" min="1" max="${max}" placeholder="${texts.unchanged}"></label>`
  return html`<form>
<label data-option="format">${texts.format} <select name="format"></select></label>
${number('quality', 'quality', 100)}
${number('size', 'width', 65_535)}
${number('size', 'height', 65_535)}
<label data-option="stripMetadata" class="check"><input name="stripMetadata" type="checkbox" value="1"> ${texts.stripMetadata}</label>
</form>`
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
