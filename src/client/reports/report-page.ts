import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { PACKAGE_FOLDER } from '../../package.ts'
import { type Html, html } from '../../page/html.ts'
import { cleanLink, isLink, oneLine } from '../../safe-text.ts'
import type { Result } from '../result.ts'
import {
  countsOf,
  describeRow,
  type Review,
  type ReviewRow,
  type Run,
  STATE_LABELS,
  STATES,
  totalsOf,
} from './review.ts'

/** The ways to look at two images. The first one needs no script. */
const VIEWS = { side: 'Side by side', slider: 'Slider', fade: 'Fade', difference: 'Difference' } as const

/**
 * The page that shows every image of a comparison. It is one file, loads nothing but images, and needs its script only for
 * filters and views.
 */
export async function renderReport(title: string, review: Review): Promise<string> {
  // Without earlier images, there may be nothing to count.
  const isCompared = review.baseline !== undefined || review.rows.some(({ state }) => state === 'changed')
  const totals = isCompared ? totalsOf(review) : `${review.rows.length} images`
  const [script, style] = await Promise.all([readAsset('report.js'), readAsset('report.css')])
  const policy = [
    "default-src 'none'",
    'img-src http: https: data:',
    `script-src ${hashOf(script)}`,
    `style-src ${hashOf(style)}`,
    "base-uri 'none'",
    "form-action 'none'",
  ].join('; ')
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="referrer" content="no-referrer">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${oneLine(title)}: ${totals}</title>
<link rel="icon" href="data:,">
<style>${{ html: style }}</style>
</head>
<body data-view="side">
<header>
<h1>${oneLine(title)}</h1>
<p class="totals">${totals}</p>
<p>${renderFacts(review)}</p>
</header>
${renderBar(review)}
<main>
${review.rows.map(renderRow)}</main>
<script type="module">${{ html: script }}</script>
</body>
</html>
`.html
}

/** The build writes them (scripts/bundle.mjs) from src/page/browser. */
const readAsset = (name: string) => readFile(new URL(`dist/report/${name}`, PACKAGE_FOLDER), 'utf8')

const hashOf = (text: string) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`

function renderFacts({ run = {}, baseline }: Review): Html {
  const show = ({ commit = '', url }: Run, text: string): Html => {
    const shown = html`${text} ${commit.slice(0, 12)}`
    return url === undefined ? shown : link(url, shown)
  }
  const facts = [
    ...(run.commit || run.url ? [show(run, run.commit ? 'Commit' : 'Run')] : []),
    ...(baseline ? [html`compared with ${show(baseline, oneLine(baseline.name))}`] : []),
  ]
  return html`${facts.map((fact, index) => html`${index > 0 && ' · '}${fact}`)}`
}

function renderBar(review: Review): Html {
  const counts = countsOf(review)
  const kinds = STATES.filter(state => counts[state] > 0)
  return html`<form role="search" hidden>
<fieldset><legend>Show</legend>
${radio('state', 'all', `All ${review.rows.length}`, true)}${kinds.map(state =>
  radio('state', state, `${STATE_LABELS[state]} ${counts[state]}`, false),
)}</fieldset>
<fieldset><legend>View</legend>
${Object.entries(VIEWS).map(([view, text], index) => radio('view', view, text, index === 0))}</fieldset>
<label class="search">Name <input type="search" name="text" autocomplete="off" spellcheck="false"></label>
<p class="keys"><kbd>j</kbd> <kbd>k</kbd> next, previous · <kbd>1</kbd>–<kbd>4</kbd> view · <kbd>/</kbd> name</p>
<p class="found" role="status"></p>
</form>`
}

const radio = (name: string, value: string, text: string, isChecked: boolean): Html =>
  html`<label><input type="radio" name="${name}" value="${value}"${isChecked && html` checked`}><span>${text}</span></label>
`

function renderRow(row: ReviewRow): Html {
  const { name, state, before, after, difference, from } = row
  const facts = describeRow(row)
  const images = [
    ['before', 'Before', before],
    ['after', 'After', after],
    ['difference', 'Difference', difference],
  ] as const
  const figures = images.flatMap(([part, label, image]) =>
    image?.url === undefined ? [] : [renderImage(part, label, image)],
  )
  const isPair = before?.url !== undefined && after?.url !== undefined
  return html`<article data-state="${state}" tabindex="-1">
<h2><span class="state">${STATE_LABELS[state]}</span> ${oneLine(name)}</h2>
${from !== undefined && html`<p>Renamed from ${oneLine(from)}</p>\n`}${facts !== '' && html`<p>${facts}</p>\n`}${
  after?.error !== undefined && html`<p>${oneLine(after.error)}</p>\n`
}<div class="images"${isPair && html` data-pair`}>
${figures}${isPair && html`<input type="range" min="0" max="100" value="50" aria-label="Before or after">\n`}</div>
</article>
`
}

function renderImage(part: string, label: string, { name, url = '', width, height }: Result): Html {
  const size = width !== undefined && height !== undefined && html` width="${width}" height="${height}"`
  const image = html`<img loading="lazy" decoding="async" src="${safeLink(url)}" alt="${label}: ${oneLine(name)}"${size}>`
  return html`<figure class="${part}"><figcaption>${label}</figcaption>${link(url, image)}</figure>
`
}

const link = (url: string, content: Html): Html => html`<a href="${safeLink(url)}">${content}</a>`

/** Results may come from a file of others: never a link that runs a script. */
function safeLink(url: string): string {
  const clean = cleanLink(url)
  return isLink(clean) ? clean : ''
}
