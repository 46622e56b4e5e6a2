import { escapeHtml } from './page/html.ts'
import { CONTROLS } from './page/links.ts'

// Escapes text from others (file names, responses) for each kind of output. Links are checked in page/links.ts, which
// browsers load, too.
export { CONTROLS, cleanLink, isLink } from './page/links.ts'

/** What services that build take for a command in the output of one: `::error::` at the start of a line, `##[error]` anywhere. */
const COMMANDS = /^([^\S\n]*:)(?=:)|#(?=#\w*\[)/gm

/** Text that is safe to show in a terminal: names of files and responses of servers can't move the cursor or run commands. */
export function plain(text: string): string {
  return text.replace(CONTROLS, keepLayout).replace(COMMANDS, '$& ')
}

const keepLayout = (character: string) => (character === '\n' || character === '\t' ? character : '?')

/** Text from others, as a part of one line. */
export function oneLine(text: string): string {
  return plain(text.replace(/[\t\n]/g, '?'))
}

/** JSON for people and programs: what `plain` would change is escaped, so that it stays what it is. */
function escapeJson(json: string): string {
  return json
    .replace(CONTROLS, character => (keepLayout(character) === '?' ? toUnicodeEscape(character) : character))
    .replace(/#(?=#\w*\[)/g, toUnicodeEscape)
}

/** The same of a value, on several lines. */
export function toJson(value: unknown): string {
  return escapeJson(JSON.stringify(value, undefined, 2))
}

/** The same as one line. */
export function toJsonLine(value: unknown): string {
  return escapeJson(JSON.stringify(value))
}

export function toUnicodeEscape(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
}

/** Words that neither Markdown nor a forge makes anything of. Hexadecimal digits may name a commit, `GH-1` an issue. */
const WORDS = /^(?!.*(?<![\p{L}\p{N}])[\da-f]{7})(?:[\p{L}\p{N} (),;"'?›]|-(?![\d-])|: |(?<!www)\.)*$/iu

/** Text of others in Markdown, without any markup. What a Git host would turn into a link is shown as code. */
export function toMarkdown(text: string): string {
  const line = oneLine(text)
  return WORDS.test(line) ? line : toMarkdownCode(line)
}

/**
 * The name of a file in Markdown, as code: Git hosts turn parts of text into links, mentions and references (`www.…`, `#1`,
 * `GH-1`, `!1`, `@user`), even if they are escaped, but not in code. Character references keep it free of markup.
 */
export function toMarkdownCode(name: string): string {
  // GitHub makes an email address of "icon@2x.png" even so, but not across an HTML comment.
  return `<code>${toMarkdownText(name).replace(/(?<=[\p{L}\p{N}.;-])&#x40;/gu, '&#x40;<!-- -->')}</code>`
}

/** A name, with character references, without markup of Markdown or HTML: for an attribute in Markdown. */
export function toMarkdownText(text: string): string {
  return oneLine(text).replace(
    /[^\p{L}\p{N} ./-]|(?<=www)\./giu,
    character => `&#x${character.codePointAt(0)?.toString(16)};`,
  )
}

/** Text in XML, which can't hold control characters, however they are written. */
export function toXml(text: string): string {
  return escapeHtml(oneLine(text))
    .replace(/[\ufffe\uffff]/g, '?')
    .toWellFormed()
}
