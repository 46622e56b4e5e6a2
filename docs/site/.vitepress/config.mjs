import { readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitepress'

/** A copy of the documents, which `build` makes. */
const ROOT = fileURLToPath(new URL('../pages', import.meta.url))
const SOURCE = process.env.REPOSITORY_URL

/** The path of a page on the site, by the path of its file. */
const PAGES = {
  'README.md': 'index.md',
  'README.zh-CN.md': 'zh.md',
  'docs/README.md': 'all.md',
  'docs/:folder/README.md': ':folder/index.md',
  'docs/:page*': ':page*',
  'bench/README.md': 'contributing/benchmark.md',
}

/** The sections and pages of docs/README.md, which lists all of them. */
function readSidebar() {
  const [, ...sections] = readFileSync(join(ROOT, 'docs/README.md'), 'utf8').split('\n## ')
  return sections.map((section, index) => ({
    text: section.split('\n')[0],
    collapsed: index > 1,
    items: [...section.matchAll(/\[([^\]]+)\]\(([^)]+\.md)\)/g)].map(([, text, path]) => ({
      text: text.replaceAll('`', ''),
      link: toUrl(join('docs', path)),
    })),
  }))
}

/** The URL of the page of a Markdown file. */
function toUrl(path) {
  const page = PAGES[path] ?? path.replace(/^docs\//, '').replace(/README\.md$/, 'index.md')
  return `/${page.replace(/\.md$/, '').replace(/(?<=^|\/)index$/, '')}`
}

/** The anchors that Git hosts make of headings. */
const slugify = heading =>
  heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .trim()
    .replaceAll(' ', '-')

/**
 * Links lead to pages of the site, to the examples, which are copied to it, or else to the source of the repository. Without
 * its URL, they become plain text.
 */
function linkToSite(md) {
  md.core.ruler.push('link-to-site', ({ tokens, env }) => {
    for (const { children } of tokens) {
      const open = []
      for (const token of children ?? []) {
        if (token.type === 'link_open') open.push(token)
        if (token.type === 'link_open') rewrite(token, env.realPath ?? env.path)
        if (token.type === 'link_close' && open.pop()?.hidden) token.hidden = true
      }
    }
  })
  const asIs = (tokens, index, options, _env, self) =>
    tokens[index].hidden ? '' : self.renderToken(tokens, index, options)
  const before = md.renderer.rules.link_open
  md.renderer.rules.link_open = (tokens, index, ...rest) =>
    tokens[index].hidden ? '' : before(tokens, index, ...rest)
  md.renderer.rules.link_close = asIs
}

/** VitePress reads `{{ … }}` as an expression of Vue, also in code within a line. */
function keepBraces(md) {
  const before = md.renderer.rules.code_inline
  md.renderer.rules.code_inline = (tokens, index, ...rest) => {
    tokens[index].attrSet('v-pre', '')
    return before(tokens, index, ...rest)
  }
}

function rewrite(token, file) {
  const href = token.attrGet('href')
  if (/^(?:[a-z]+:|#)/.test(href)) return
  const [target, anchor] = href.split('#')
  const path = relative(ROOT, join(dirname(file), decodeURIComponent(target)))
  if (path.endsWith('.md') && !path.startsWith('docs/examples/'))
    token.attrSet('href', `${toUrl(path)}${anchor ? `#${anchor}` : ''}`)
  else if (path.startsWith('docs/examples/')) token.attrSet('href', `/${path.replace('docs/', '')}`)
  else if (SOURCE) token.attrSet('href', `${SOURCE}/${path}`)
  else token.hidden = true
}

// biome-ignore lint/style/noDefaultExport: VitePress reads it
export default defineConfig({
  title: 'upload-server',
  description: 'A small server that stores uploaded images and files, and returns their links.',
  srcDir: ROOT,
  srcExclude: ['docs/examples/**'],
  rewrites: PAGES,
  base: process.env.BASE ?? '/',
  cleanUrls: true,
  ignoreDeadLinks: [/^\/examples\//, /^https?:\/\/(?:127\.0\.0\.1|localhost)/],
  markdown: {
    anchor: { slugify },
    config(md) {
      linkToSite(md)
      keepBraces(md)
    },
  },
  themeConfig: {
    search: { provider: 'local' },
    sidebar: readSidebar(),
    nav: [
      { text: 'Quick start', link: '/start/quick-start' },
      { text: 'Destinations', link: '/destinations/' },
      { text: 'All pages', link: '/all' },
      { text: '中文', link: '/zh' },
    ],
    outline: [2, 3],
  },
})
