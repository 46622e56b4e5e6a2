import { editorsFor, isLocalUrl } from './editors.ts'
import { credentialFor, examplesFor } from './examples.ts'
import { type DestinationChoice, destinationQuery, type PageFacts } from './facts.ts'
import { type Html, html, prose } from './html.ts'
import { renderUploader } from './uploader.ts'
import type { Words } from './words-en.ts'

/** The whole page: the upload form, then examples for programs. Without JavaScript only the examples remain. */
export function renderDocument(facts: PageFacts): string {
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
<body data-words="${JSON.stringify(words.script)}">
<a class="skip" href="#main">${words.skip}</a>
<header>
<p class="brand">${MARK}upload-server</p>
<a href="?lang=${words.other.query}" lang="${words.other.lang}" hreflang="${words.other.lang}">${words.other.label}</a>
</header>
<div class="columns">
${renderContents(words)}
<main id="main">
${renderUploader(facts)}
${renderExamples(facts)}
${renderDestinations(facts)}
${renderReference(facts)}
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

function renderDestinations({ words, visitor }: PageFacts): Html {
  const { title, known, unknown } = words.destinations
  const row = ({ picbed, configName, isDefault }: DestinationChoice) => html`<li>
<span>${picbed} / ${configName} ${isDefault && html`<small>${words.upload.default}</small>`}</span>
<code>?${destinationQuery({ picbed, configName })}</code>
</li>\n`
  return html`<section id="destinations">
<h2>${title}</h2>
${
  visitor.admittedBy
    ? html`<p>${known}</p>
<ul>
${visitor.choices.map(row)}</ul>`
    : html`<p>${prose(unknown)}</p>`
}
</section>`
}

function renderExamples(facts: PageFacts): Html {
  const { words, base, visitor } = facts
  const { examples: texts, groups } = words
  const credential = credentialFor(visitor, base)
  const withKey = credential === 'key'
  const code = examplesFor({ base, credential })
  // Editor plugins can't send a password.
  const key = credential === 'none' ? undefined : 'YOUR_KEY'
  const editors = editorsFor({ base, key, command: code.typora }, words)
  const isSignedIn = visitor.admittedBy !== undefined && visitor.signIn !== undefined
  const noSignIn = isSignedIn && key !== undefined ? [texts.noSignIn] : []
  return html`<section id="programs">
<h2>${groups.programs}</h2>
<p>${words.lead}</p>
${snippet(words.uploadUrl, `${base}/upload`)}
${isSignedIn && credential === 'key' && html`<p>${prose(texts.signInPage)}</p>`}
${isSignedIn && visitor.signIn === 'network' && html`<p>${prose(texts.signInNetwork)}</p>`}
${withKey && html`<p>${prose(texts.exportKey)}</p>`}
${credential === 'password' && html`<p>${prose(texts.exportUser)}</p>`}
${example('curl', 'curl', [texts.curl], code.curl)}
${snippet(texts.curlBare, code.curlBare)}
${example('fetch', 'fetch', [texts.fetch], code.fetch)}
${example('python', 'Python', [texts.python], code.python)}
</section>
<section id="editors">
<h2>${groups.editors}</h2>
${editors.map(({ id, name, text, code }) => example(id, name, id === 'typora' ? [text] : [text, ...noSignIn], code))}
</section>
<section id="ci">
<h2>${groups.ci}</h2>
${isLocalUrl(base) && html`<p class="note">${prose(texts.loopback)}</p>`}
${example('github', 'GitHub Actions', [texts.github, ...(credential === 'password' ? [texts.secretUser] : [texts.secret])], code.github)}
${example('gitlab', 'GitLab CI', [texts.gitlab, ...(credential === 'password' ? [texts.variableUser] : [texts.variable])], code.gitlab)}
</section>`
}

function renderReference(facts: PageFacts): Html {
  const { responses, more } = facts.words
  const code = examplesFor({ base: facts.base, credential: credentialFor(facts.visitor, facts.base) })
  return html`<section id="responses">
<h2>${responses.title}</h2>
<p>${prose(responses.success)}</p>
${block(code.success)}
<p>${prose(responses.failure)}</p>
${block(code.failure)}
<p>${prose(responses.pending)}</p>
${block(code.pending)}
${block(code.finish)}
</section>
<section id="more">
<h2>${more.title}</h2>
${example('list', more.list, [more.listText], code.list)}
${example('clipboard', more.clipboard, [more.clipboardText], code.clipboard)}
<h3 id="sharex">${more.shareX}</h3>
<p>${more.shareXText} <a href="${facts.root}upload-server.sxcu" download>upload-server.sxcu</a></p>
<h3 id="about-keys">${more.key}</h3>
<p>${prose(more.keyText)}</p>
<h3 id="openapi">${more.openApi}</h3>
<p>${more.openApiText} <a href="${facts.root}openapi.json">openapi.json</a></p>
<p>${prose(more.metricsText)}</p>
${example('heartbeat', more.health, [more.healthText], code.heartbeat)}
</section>`
}

function example(id: string, title: string, texts: readonly string[], code: string): Html {
  return html`<h3 id="${id}">${title}</h3>
<p>${prose(texts.join(' '))}</p>
${block(code)}`
}

/** The script adds a copy button to every `.copy`. */
function block(code: string): Html {
  return html`<div class="copy"><pre><code>${code}</code></pre></div>`
}

function snippet(label: string, code: string): Html {
  return html`<p class="label">${label}</p>
<div class="copy"><pre><code>${code}</code></pre></div>`
}
