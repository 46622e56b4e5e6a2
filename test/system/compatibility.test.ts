import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { formOf, list } from '../helpers/form.ts'
import { startApp } from '../helpers/start-app.ts'
import { startPicGo } from '../servers/picgo.ts'

const DOT = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==',
  'base64',
)

interface Request {
  what: string
  path: string
  init: (file: string) => RequestInit
  /** Why this server's response differs from PicGo's. */
  reason?: string
}

const post = (init: RequestInit) => () => ({ method: 'POST', ...init })
const form = (files: Record<string, Uint8Array>, field?: string) => post({ body: formOf(files, field) })
const json = (body: string) => post({ body, headers: { 'Content-Type': 'application/json' } })

const NOTHING_TO_LIST = 'no file was sent, so there is nothing to list; no client reads `items` then'

/** Requests of the documented clients, and mistakes that they make. */
const REQUESTS: Request[] = [
  { what: 'heartbeat', path: '/heartbeat', init: post({}) },
  { what: 'heartbeat with JSON', path: '/heartbeat', init: json('{}') },
  {
    what: 'heartbeat with GET',
    path: '/heartbeat',
    init: () => ({}),
    reason: 'userscripts and health checks use GET',
  },
  { what: 'form, field `files`', path: '/upload', init: form({ 'a.png': DOT }, 'files') },
  {
    what: 'form, field `file`',
    path: '/upload',
    init: form({ 'a.png': DOT }, 'file'),
    reason: 'most clients of PicList use this field name',
  },
  {
    what: 'form with 3 files',
    path: '/upload',
    init: form({ 'a.png': DOT, 'b.png': DOT, 'c.png': DOT }, 'files'),
  },
  {
    what: 'form with the file name `中文 #?%.png`',
    path: '/upload',
    init: form({ '中文 #?%.png': DOT }, 'files'),
  },
  { what: '`list` with a file path', path: '/upload', init: file => ({ method: 'POST', ...list(file) }) },
  {
    what: '`list` with 2 file paths',
    path: '/upload',
    init: file => ({ method: 'POST', ...list(file, file) }),
  },
  {
    what: "`list` with a file path that doesn't exist",
    path: '/upload',
    init: post(list('/nowhere/a.png')),
    reason: 'a 4xx status tells that the request is at fault',
  },
  {
    what: "`list` with 2 file paths, one of which doesn't exist",
    path: '/upload',
    init: file => ({ method: 'POST', ...list(file, '/nowhere/a.png') }),
    reason: 'clients match links to files by position, so a missing link would shift the rest',
  },
  { what: 'invalid JSON', path: '/upload', init: json('{'), reason: NOTHING_TO_LIST },
  {
    what: "`list` that isn't an array",
    path: '/upload',
    init: json('{"list":"a"}'),
    reason: NOTHING_TO_LIST,
  },
  {
    what: 'form without files',
    path: '/upload',
    init: () => {
      const body = new FormData()
      body.append('name', 'a')
      return { method: 'POST', body }
    },
    reason: NOTHING_TO_LIST,
  },
  {
    what: 'unknown destination',
    path: '/upload?picbed=nosuch',
    init: form({ 'a.png': DOT }, 'files'),
    reason: 'PicGo silently stores the file at another destination',
  },
  {
    what: 'unknown URL',
    path: '/nosuch',
    init: post({}),
    reason: 'clients that expect JSON get the reason',
  },
]

/** Reduces a response to what clients read. Messages, times and names differ between the servers. */
async function ask(url: string, { path, init }: Request, file: string): Promise<string> {
  const response = await fetch(url + path, { signal: AbortSignal.timeout(10_000), ...init(file) })
  const text = await response.text()
  if (!response.headers.get('content-type')?.startsWith('application/json'))
    return `${response.status} ${response.headers.get('content-type')?.split(';')[0]}`
  const { success, result, items, message } = JSON.parse(text)
  if (Array.isArray(result)) expect(items).toHaveLength(result.length)
  const links = Array.isArray(result) ? `links: ${result.length}` : `\`result\` ${result ?? 'missing'}`
  return `${response.status}, ${success ? 'success' : 'failure'}, ${links}${message ? ', a message' : ''}`
}

const PAGE = fileURLToPath(new URL('../../docs/reference/compatibility.md', import.meta.url))

it('responds as PicGo does, except for the differences in docs/reference/compatibility.md', async context => {
  const picgo = await startPicGo(context)
  const { url, directory } = await startApp()
  const file = join(directory, 'picture.png')
  await writeFile(file, DOT)
  const different = new Map<string, string[]>()
  const same: string[] = []
  for (const request of REQUESTS) {
    const [theirs, ours] = [await ask(picgo, request, file), await ask(url, request, file)]
    if (theirs === ours) same.push(request.what)
    else {
      const cells = `${theirs} | ${ours} | ${request.reason ?? 'NO REASON GIVEN'}`
      different.set(cells, [...(different.get(cells) ?? []), request.what])
    }
  }
  const rows = [...different].map(([cells, whats]) => `| ${whats.join('; ')} | ${cells} |`)
  if (process.env['WRITE']) await writeFile(PAGE, page(same, rows))
  expect(await readFile(PAGE, 'utf8'), 'a response of PicGo or of this server has changed').toBe(
    page(same, rows),
  )
  expect(rows.filter(row => row.includes('NO REASON GIVEN'))).toEqual([])
})

const page = (
  same: string[],
  rows: string[],
) => `<!-- Generated by \`WRITE=1 npx vitest run test/system/compatibility.test.ts\` from the responses of both servers. -->

# Compatibility with PicGo and PicList

For authors of clients: how this server responds to the requests of PicGo's clients, compared with PicGo 3.1.0 from npm.
CI sends these requests to both servers, and fails if a response changes.

The responses are the same for: ${same.join(', ')}. "links" is the number of members of \`result\`, and of \`items\`.

| Request | PicGo | upload-server | Reason for the difference |
|---|---|---|---|
${rows.join('\n')}

PicList's server can't be compared this way: PicList-Core 0.3.2, the version on npm, has none. \`test/wire\` replays the
requests of its clients.
`
