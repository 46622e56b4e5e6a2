import { CONTROLS } from './page/links.ts'

// What others have named or answered is written into texts of many kinds. What may stand there is decided here, and for
// links in page/links.ts, which browsers load, too.
export { CONTROLS, cleanLink, isLink } from './page/links.ts'

/** What services that build take for a command in the output of one: `::error::` at the start of a line, `##[error]` anywhere. */
const COMMANDS = /^([^\S\n]*:)(?=:)|#(?=#\w*\[)/gm

/** Text as it may be shown: what a file is called, or a server answers, moves no cursor and commands nobody. */
export function plain(text: string): string {
  return text.replace(CONTROLS, keepLayout).replace(COMMANDS, '$& ')
}

const keepLayout = (character: string) => (character === '\n' || character === '\t' ? character : '?')

/** What somebody else has said or named, as a part of one line. */
export function oneLine(text: string): string {
  return plain(text.replace(/[\t\n]/g, '?'))
}

/** JSON for people and programs: what `plain` would change is escaped, so that it stays what it is. */
export function escapeJson(json: string): string {
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

/** Text of others in Markdown, without any markup. What a forge would make a link of stands there as code. */
export function toMarkdown(text: string): string {
  const line = oneLine(text)
  return WORDS.test(line) ? line : toMarkdownCode(line)
}

/**
 * The name of a file in Markdown, as code: forges make links, calls and references of the finished text (`www.…`, `#1`,
 * `GH-1`, `!1`, `@user`), whatever is escaped, but of none in code. By references of characters it holds no markup either.
 */
export function toMarkdownCode(name: string): string {
  const text = oneLine(name)
    .replace(/[^\p{L}\p{N} ./-]|(?<=www)\./giu, character => `&#x${character.codePointAt(0)?.toString(16)};`)
    // GitHub makes an email address of "icon@2x.png" even so, but not across an HTML comment.
    .replace(/(?<=[\p{L}\p{N}.;-])&#x40;/gu, '&#x40;<!-- -->')
  return `<code>${text}</code>`
}

const ENTITIES: Readonly<Record<string, string>> = { '<': '&lt;', '>': '&gt;', '&': '&amp;', '"': '&quot;' }

/** Text in XML, which can't hold control characters, however they are written. */
export function toXml(text: string): string {
  return oneLine(text)
    .replace(/[<>&"]/g, character => ENTITIES[character] ?? '')
    .replace(/[\ufffe\uffff]/g, '?')
    .toWellFormed()
}
