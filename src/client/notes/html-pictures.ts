import { type Token, Tokenizer, TokenizerMode } from 'parse5'

/** The `src` of an `<img>`: where its value stands between its quotes, and what it says. */
export interface HtmlPicture {
  readonly from: number
  readonly to: number
  readonly target: string
  /** Whether it stands there without quotes. */
  readonly isBare: boolean
}

/** Elements whose content holds no tags. */
const TEXT_ONLY = new Set(['script', 'style', 'textarea', 'title', 'xmp', 'iframe', 'noembed', 'noframes'])

/** Finds the pictures of a piece of HTML, complete or not. Comments and scripts show none. */
export function findHtmlPictures(html: string): HtmlPicture[] {
  const found: HtmlPicture[] = []
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

function sourceOf({ attrs, location }: Token.TagToken, html: string): HtmlPicture[] {
  const target = attrs.find(({ name }) => name === 'src')?.value
  const place = location?.attrs?.['src']
  if (!target || !place) return []
  const text = html.slice(place.startOffset, place.endOffset)
  const value = /^[^=]*=\s*/.exec(text)?.[0].length ?? 0
  const quotes = /["']/.test(text[value] ?? '') ? 1 : 0
  const [from, to] = [place.startOffset + value + quotes, place.endOffset - quotes]
  return [{ from, to, target, isBare: quotes === 0 }]
}
