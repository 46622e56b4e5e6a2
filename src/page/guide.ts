import { editorsFor, isLocalUrl } from './editors.ts'
import { type DestinationChoice, destinationQuery, type SignIn, type Visitor } from './facts.ts'
import { type Html, html, prose } from './html.ts'
import type { Words } from './words-en.ts'

/** What clients send: nothing, an upload key, or a user name and password for a reverse proxy that adds the key. */
export type Credential = 'none' | 'key' | 'password'

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
 * The credential that the examples send. A visitor on the server's machine needs none, unless the URL is one that other
 * machines use. Behind a reverse proxy that knows people, clients send what that proxy accepts.
 */
export function credentialFor(visitor: Visitor, base: string): Credential {
  if (visitor.admittedBy === 'proxy')
    return visitor.signIn === 'network' ? 'none' : visitor.signIn === 'page' ? 'key' : 'password'
  if (visitor.admittedBy === 'loopback') return isLocalUrl(base) ? 'none' : 'key'
  return visitor.admittedBy === 'anonymous' ? 'none' : 'key'
}

const CURL: Record<Credential, string> = {
  none: 'curl',
  key: 'curl -H "Authorization: Bearer $UPLOAD_KEY"',
  password: 'curl -u "$UPLOAD_USER"',
}

/**
 * The documentation below the upload form. The server renders it for everyone; the script renders it again for a visitor
 * with another URL, credential or list of destinations.
 */
export function renderGuide({ words, base, root, credential, signIn, choices }: GuideFacts): Html {
  const texts = words.guide
  const curl = CURL[credential]
  const server = credential === 'password' ? base.replace('://', '://NAME:PASSWORD@') : base
  const command = `upload-server upload --server ${server}`
  // Editor plugins can't send a password.
  const key = credential === 'none' ? undefined : 'YOUR_KEY'
  const typora = credential === 'key' ? `${command} --key YOUR_KEY` : command
  const noSignIn = signIn !== undefined && key !== undefined ? ` ${texts.noSignIn}` : ''
  const notes = [
    ...(signIn !== undefined && credential === 'key' ? [texts.signInPage] : []),
    ...(signIn === 'network' ? [texts.signInNetwork] : []),
    ...(credential === 'key' ? [texts.exportKey] : []),
    ...(credential === 'password' ? [texts.exportUser] : []),
  ]
  return html`${fold(
    'programs',
    texts.programs,
    html`<p>${texts.lead}</p>
${example('upload-url', texts.uploadUrl, '', `${base}/upload`)}
${notes.map(note => html`<p>${prose(note)}</p>\n`)}${example('curl', 'curl', texts.curl, `${curl} -F file=@picture.png ${base}/upload`)}
<p>${texts.curlBare}</p>
${block(`${curl} -H "Accept: text/plain" -T picture.png ${base}/upload/`)}
${example('ci', 'CI', texts.ci, `${command} screenshots/`)}
${isLocalUrl(base) && html`<p class="note">${prose(texts.loopback)}</p>`}`,
  )}
${fold(
  'editors',
  texts.editors,
  html`${editorsFor({ base, key, command: typora }, words).map(({ id, name, text, code }) =>
    example(id, name, text + (id === 'typora' ? '' : noSignIn), code),
  )}`,
)}
${fold(
  'destinations',
  texts.destinations,
  html`<p>${prose(choices ? texts.known : texts.unknown)}</p>
<ul>
${(choices ?? []).map(choice => renderChoice(choice, words))}</ul>`,
)}
${fold(
  'more',
  texts.more,
  html`<p>${prose(texts.aboutKeys)}</p>
<p>${texts.shareX} <a href="${root}upload-server.sxcu" download>upload-server.sxcu</a></p>
<p>${texts.openApi} <a href="${root}openapi.json">openapi.json</a></p>`,
)}`
}

function renderChoice(choice: DestinationChoice, { upload }: Words): Html {
  const { picbed, configName, isDefault } = choice
  return html`<li>
<span>${picbed} / ${configName} ${isDefault && html`<small>${upload.default}</small>`}</span>
<code>?${destinationQuery(choice)}</code>
</li>\n`
}

/** A section that is closed until it is wanted. */
function fold(id: string, title: string, content: Html): Html {
  return html`<details id="${id}" class="fold">
<summary><h2>${title}</h2></summary>
${content}
</details>`
}

function example(id: string, title: string, text: string, code: string): Html {
  return html`<h3 id="${id}">${title}</h3>
${text !== '' && html`<p>${prose(text)}</p>`}
${block(code)}`
}

/** The script adds a copy button to every `.copy`. */
function block(code: string): Html {
  return html`<div class="copy"><pre><code>${code}</code></pre></div>`
}
