import { decodeHTMLAttribute } from 'entities'
import { type Token, Tokenizer, TokenizerMode } from 'parse5'

/** The URL of an image in `src` or `srcset`: its position without quotes, and the decoded value. */
export interface HtmlImage {
  readonly from: number
  readonly to: number
  readonly target: string
  /** Whether the value of the attribute has no quotes. */
  readonly isBare: boolean
}

/** Elements whose content is text only. */
const TEXT_ONLY = new Set(['script', 'style', 'textarea', 'title', 'xmp', 'iframe', 'noembed', 'noframes'])

/** Finds the images of a piece of HTML, which may be incomplete. Comments and scripts are skipped. */
export function findHtmlImages(html: string): HtmlImage[] {
  const found: HtmlImage[] = []
  const ignore = () => {}
  const tokenizer = new Tokenizer(
    { sourceCodeLocationInfo: true },
    {
      onStartTag(tag) {
        if (TEXT_ONLY.has(tag.tagName)) tokenizer.state = TokenizerMode.RAWTEXT
        if (tag.tagName === 'img') found.push(...sourceOf(tag, html))
        if (tag.tagName === 'img' || tag.tagName === 'source') found.push(...sourceSetOf(tag, html))
      },
      onEndTag: ignore,
      onComment: ignore,
      onDoctype: ignore,
      onEof: ignore,
      onCharacter: ignore,
      onNullCharacter: ignore,
      onWhitespaceCharacter: ignore,
    },
  )
  tokenizer.write(html, true)
  return found
}

function sourceOf(tag: Token.TagToken, html: string): HtmlImage[] {
  const target = tag.attrs.find(({ name }) => name === 'src')?.value
  const value = findValue(tag, 'src', html)
  return target && value ? [{ ...value, target }] : []
}

/** URLs of a `srcset`. Between them are descriptors such as `2x`, and a comma that is not part of a URL. */
const CANDIDATE = /([^\s,]\S*?)(?:,(?=\s|$)|\s[^,]*,?|$)/g

/** The URLs of `srcset="a.png 1x, b.png 2x"`. */
function sourceSetOf(tag: Token.TagToken, html: string): HtmlImage[] {
  const value = findValue(tag, 'srcset', html)
  if (!value) return []
  const { from: start, to: end, isBare } = value
  return [...html.slice(start, end).matchAll(CANDIDATE)].map(({ index, 1: url = '' }) => {
    const from = start + index
    return { from, to: from + url.length, target: decodeHTMLAttribute(url), isBare }
  })
}

/** The position of the value of an attribute, without its quotes. */
function findValue({ location }: Token.TagToken, name: string, html: string) {
  const place = location?.attrs?.[name]
  if (!place) return undefined
  const text = html.slice(place.startOffset, place.endOffset)
  const value = /^[^=]*=\s*/.exec(text)?.[0].length
  if (value === undefined) return undefined
  const quotes = /["']/.test(text[value] ?? '') ? 1 : 0
  const [from, to] = [place.startOffset + value + quotes, place.endOffset - quotes]
  return { from, to, isBare: quotes === 0 }
}
