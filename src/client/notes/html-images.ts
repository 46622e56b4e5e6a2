import { type Token, Tokenizer, TokenizerMode } from 'parse5'

/** The `src` of an `<img>`: the position of its value without quotes, and the decoded value. */
export interface HtmlImage {
  readonly from: number
  readonly to: number
  readonly target: string
  /** Whether the value has no quotes. */
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

function sourceOf({ attrs, location }: Token.TagToken, html: string): HtmlImage[] {
  const target = attrs.find(({ name }) => name === 'src')?.value
  const place = location?.attrs?.['src']
  if (!target || !place) return []
  const text = html.slice(place.startOffset, place.endOffset)
  const value = /^[^=]*=\s*/.exec(text)?.[0].length ?? 0
  const quotes = /["']/.test(text[value] ?? '') ? 1 : 0
  const [from, to] = [place.startOffset + value + quotes, place.endOffset - quotes]
  return [{ from, to, target, isBare: quotes === 0 }]
}
