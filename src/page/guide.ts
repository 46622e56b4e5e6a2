import { editorsFor, isLocalUrl } from './editors.ts'
import { type Credential, examplesFor } from './examples.ts'
import { type DestinationChoice, destinationQuery, type SignIn } from './facts.ts'
import { type Html, html, prose } from './html.ts'
import type { Words } from './words-en.ts'

export interface GuideFacts {
  readonly words: Words
  /** URL of the server, without a trailing slash. */
  readonly base: string
  /** Relative URL from the page to the server's root: empty, or `../` repeated. */
  readonly root: string
  readonly credential: Credential
  /** Undefined: no reverse proxy signed the visitor in. */
  readonly signIn?: SignIn | undefined
  /** The destinations that the visitor may use. Undefined: they are shown to those who may upload. */
  readonly choices?: readonly DestinationChoice[] | undefined
}

/**
 * The documentation below the upload form. The server renders it for everyone; the script renders it again for a visitor
 * with another URL, credential or list of destinations.
 */
export function renderGuide(facts: GuideFacts): Html {
  const { words, base, root, credential, signIn, choices } = facts
  const { examples: texts, groups, destinations, responses, more } = words
  const code = examplesFor({ base, credential })
  const withPassword = credential === 'password'
  // Editor plugins can't send a password.
  const key = credential === 'none' ? undefined : 'YOUR_KEY'
  const editors = editorsFor({ base, key, command: code.typora }, words)
  const noSignIn = signIn !== undefined && key !== undefined ? [texts.noSignIn] : []
  return html`${fold(
    'programs',
    groups.programs,
    html`<p>${words.lead}</p>
${snippet(words.uploadUrl, `${base}/upload`)}
${signIn !== undefined && credential === 'key' && html`<p>${prose(texts.signInPage)}</p>`}
${signIn === 'network' && html`<p>${prose(texts.signInNetwork)}</p>`}
${credential === 'key' && html`<p>${prose(texts.exportKey)}</p>`}
${withPassword && html`<p>${prose(texts.exportUser)}</p>`}
${example('curl', 'curl', texts.curl, code.curl)}
${snippet(texts.curlBare, code.curlBare)}
${example('fetch', 'fetch', texts.fetch, code.fetch)}
${example('python', 'Python', texts.python, code.python)}`,
  )}
${fold(
  'editors',
  groups.editors,
  html`${editors.map(({ id, name, text, code }) =>
    example(id, name, [text, ...(id === 'typora' ? [] : noSignIn)].join(' '), code),
  )}`,
)}
${fold(
  'ci',
  groups.ci,
  html`${isLocalUrl(base) && html`<p class="note">${prose(texts.loopback)}</p>`}
${example('github', 'GitHub Actions', `${texts.github} ${withPassword ? texts.secretUser : texts.secret}`, code.github)}
${example('gitlab', 'GitLab CI', `${texts.gitlab} ${withPassword ? texts.variableUser : texts.variable}`, code.gitlab)}`,
)}
${fold(
  'destinations',
  destinations.title,
  choices
    ? html`<p>${destinations.known}</p>
<ul>
${choices.map(choice => renderChoice(choice, words))}</ul>`
    : html`<p>${prose(destinations.unknown)}</p>`,
)}
${fold(
  'responses',
  responses.title,
  html`<p>${prose(responses.success)}</p>
${block(code.success)}
<p>${prose(responses.failure)}</p>
${block(code.failure)}
<p>${prose(responses.pending)}</p>
${block(code.pending)}
${block(code.finish)}`,
)}
${fold(
  'more',
  more.title,
  html`${example('list', more.list, more.listText, code.list)}
${example('clipboard', more.clipboard, more.clipboardText, code.clipboard)}
<h3 id="sharex">${more.shareX}</h3>
<p>${more.shareXText} <a href="${root}upload-server.sxcu" download>upload-server.sxcu</a></p>
<h3 id="about-keys">${more.key}</h3>
<p>${prose(more.keyText)}</p>
<h3 id="openapi">${more.openApi}</h3>
<p>${more.openApiText} <a href="${root}openapi.json">openapi.json</a></p>
<p>${prose(more.metricsText)}</p>
${example('heartbeat', more.health, more.healthText, code.heartbeat)}`,
)}`
}

function renderChoice({ picbed, configName, isDefault }: DestinationChoice, { upload }: Words): Html {
  return html`<li>
<span>${picbed} / ${configName} ${isDefault && html`<small>${upload.default}</small>`}</span>
<code>?${destinationQuery({ picbed, configName })}</code>
</li>\n`
}

/** A section that is closed until it is wanted. Browsers open it for a link to something in it, or the script does. */
function fold(id: string, title: string, content: Html): Html {
  return html`<details id="${id}" class="fold">
<summary><h2>${title}</h2></summary>
${content}
</details>`
}

function example(id: string, title: string, text: string, code: string): Html {
  return html`<h3 id="${id}">${title}</h3>
<p>${prose(text)}</p>
${block(code)}`
}

/** The script adds a copy button to every `.copy`. */
function block(code: string): Html {
  return html`<div class="copy"><pre><code>${code}</code></pre></div>`
}

function snippet(label: string, code: string): Html {
  return html`<p class="label">${label}</p>
${block(code)}`
}
