import { createHash } from 'node:crypto'
import type { RequestHandler } from 'express'
import { baseUrlOf } from './base-url.ts'

const STYLE = `
:root { color-scheme: light dark; --line: #8884; --soft: #8881 }
body { font: 1rem/1.55 system-ui, sans-serif; max-width: 52rem; margin: 0 auto; padding: 1.5rem 1rem 4rem }
h1 { margin-bottom: 0 } h2 { margin-top: 2.2rem; border-bottom: 1px solid var(--line) }
pre { background: var(--soft); border: 1px solid var(--line); border-radius: 6px; padding: .7rem .9rem; overflow-x: auto }
code { font: .9em ui-monospace, monospace } pre code { font-size: .85rem }
.scroll { overflow-x: auto } table { border-collapse: collapse } td, th { text-align: left; vertical-align: top; padding: .3rem .9rem .3rem 0; border-bottom: 1px solid var(--line) }
`

const POLICY = [
  "default-src 'none'",
  'img-src data:',
  `style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'`,
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

/** GET / and GET /upload: how to use this very server, for a person with a browser. Needs no key and shows no secret. */
export function createUsagePage(settings: {
  publicUrl?: string | undefined
  listenUrl(): string
}): RequestHandler {
  return (req, res) => {
    res.set('Content-Security-Policy', POLICY)
    res.set('X-Content-Type-Options', 'nosniff')
    res.set('Referrer-Policy', 'no-referrer')
    res.set('Cache-Control', 'no-cache')
    res.type('html').send(page(baseUrlOf(req, settings.publicUrl, settings.listenUrl()).slice(0, -1)))
  }
}

function page(base: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>upload-server</title>
<link rel="icon" href="data:,">
<style>${STYLE}</style>
</head>
<body>
<main>
<h1>upload-server</h1>
<p>The server is running. Send it pictures or other files, and it answers with their links.</p>

<h2>A file</h2>
${example(`curl -F file=@picture.png ${base}/upload`)}
<p>The field may have any name, and there may be many files. The answer has one link for each, in the same order:</p>
${example(`{"success":true,"result":["https://…/picture-1a2b3c4d.png"],"items":[…]}`)}

<h2>A path or an address</h2>
${example(`curl ${base}/upload -d '{"list": ["/home/me/picture.png", "https://example.com/other.jpg"]}'`)}
<p>Paths are absolute and lie on the machine that runs this server.</p>

<h2>The clipboard</h2>
${example(`curl -X POST ${base}/upload`)}

<h2>From another machine</h2>
${example(`curl -H "Authorization: Bearer YOUR_KEY" -F file=@picture.png ${base}/upload`)}
<p>Programs on the server's own machine need no key. <code>?key=YOUR_KEY</code> works as well, but an address is easily logged.</p>

<h2>Another destination</h2>
${example(`curl -F file=@picture.png "${base}/upload?picbed=s3&configName=blog"`)}
<p>Left out, the default destination of the configuration is used.</p>

<h2>When it fails</h2>
${example(`{"success":false,"message":"…","code":"source_failed","result":[],"errors":[{"index":0,"message":"…"}],"requestId":"…"}`)}
<p>The status is 400 or above, and <code>message</code> says what happened and what to do.</p>

<h2>All routes</h2>
<div class="scroll"><table>
<tr><th>Request<th>Answer
<tr><td><code>POST /upload</code><td>Uploads. Needs the key from other machines
<tr><td><code>GET /heartbeat</code>, <code>POST /heartbeat</code><td><code>{"success":true,"result":"alive"}</code>
<tr><td><code>GET /</code>, <code>GET /upload</code><td>This page
</table></div>

<h2>In your editor</h2>
<p>Typora, Obsidian and VS Code know this interface under the names PicGo and PicList; where they ask for an address, it is</p>
${example(`${base}/upload`)}
</main>
</body>
</html>
`
}

function example(text: string): string {
  return `<pre><code>${escapeHtml(text)}</code></pre>`
}

function escapeHtml(text: string): string {
  return text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;')
}
