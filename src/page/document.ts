import { type GuideFacts, renderGuide } from './guide.ts'
import { type Html, html } from './html.ts'
import { renderUploader } from './uploader.ts'
import type { Words } from './words-en.ts'

export interface DocumentFacts extends Pick<GuideFacts, 'words' | 'base' | 'root' | 'credential'> {
  /** Version in the URL of script and style. */
  readonly version: string
}

/**
 * The page as everyone gets it: the upload form, then the documentation. The script asks `GET page/me` for what depends on
 * the visitor. Without JavaScript only the documentation remains.
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
<a class="skip" href="#main">${words.skip}</a>
<header>
<p class="brand">${MARK}upload-server</p>
<a href="?lang=${words.other.query}" lang="${words.other.lang}" hreflang="${words.other.lang}">${words.other.label}</a>
</header>
<div class="columns">
${renderContents(words)}
<main id="main">
${renderUploader(words)}
<div id="guide">
${renderGuide(facts)}
</div>
</main>
</div>
<p id="status" class="unseen" role="status"></p>
</body>
</html>
`.html
}

const MARK: Html = html`<svg viewBox="0 0 24 24" width="22" height="22" aria-hidden="true"><path d="M12 16V5m0 0L7 10m5-5 5 5M4 15v3a2 2 0 0 0 2 2h12a2 2 0 0 0 2-2v-3" fill="none" stroke="currentColor" stroke-width="2" stroke-linecap="round" stroke-linejoin="round"/></svg>`

function renderContents(words: Words): Html {
  const entry = (id: string, text: string) => html`<li><a href="#${id}">${text}</a></li>\n`
  return html`<nav aria-label="${words.contents}">
<ul>
${entry('upload', words.upload.title)}</ul>
<p>${words.groups.programs}</p>
<ul>
${entry('curl', 'curl')}${entry('fetch', 'fetch')}${entry('python', 'Python')}</ul>
<p>${words.groups.editors}</p>
<ul>
${entry('typora', 'Typora')}${entry('obsidian', 'Obsidian')}${entry('vscode', 'VS Code')}</ul>
<p>${words.groups.ci}</p>
<ul>
${entry('github', 'GitHub Actions')}${entry('gitlab', 'GitLab CI')}</ul>
<ul>
${entry('destinations', words.destinations.title)}${entry('responses', words.responses.title)}${entry('more', words.more.title)}</ul>
</nav>`
}
