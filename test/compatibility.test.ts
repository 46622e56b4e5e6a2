import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { formOf, list } from './helpers/form.ts'
import { startApp } from './helpers/start-app.ts'
import { startPicGo } from './servers/picgo.ts'

const DOT = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==',
  'base64',
)

interface Request {
  what: string
  path: string
  init: (file: string) => RequestInit
  /** Why our answer is another one than PicGo's. */
  reason?: string
}

const post = (init: RequestInit) => () => ({ method: 'POST', ...init })
const form = (files: Record<string, Uint8Array>, field?: string) => post({ body: formOf(files, field) })
const json = (body: string) => post({ body, headers: { 'Content-Type': 'application/json' } })

const NOTHING_TO_LIST = 'no file was named, so `items` has nothing to be about; no client reads it then'

/** What the documented clients send, and what they send by mistake. */
const REQUESTS: Request[] = [
  { what: 'heartbeat', path: '/heartbeat', init: post({}) },
  { what: 'heartbeat with JSON', path: '/heartbeat', init: json('{}') },
  {
    what: 'heartbeat by GET',
    path: '/heartbeat',
    init: () => ({}),
    reason: 'userscripts and health checks ask so',
  },
  { what: 'a form, field `files`', path: '/upload', init: form({ 'a.png': DOT }, 'files') },
  {
    what: 'a form, field `file`',
    path: '/upload',
    init: form({ 'a.png': DOT }, 'file'),
    reason: 'most clients of PicList call it so',
  },
  { what: 'three files', path: '/upload', init: form({ 'a.png': DOT, 'b.png': DOT, 'c.png': DOT }, 'files') },
  { what: 'a name with `中文 #?%.png`', path: '/upload', init: form({ '中文 #?%.png': DOT }, 'files') },
  { what: 'a list with a path', path: '/upload', init: file => ({ method: 'POST', ...list(file) }) },
  { what: 'a list of two', path: '/upload', init: file => ({ method: 'POST', ...list(file, file) }) },
  {
    what: 'a list with a path that is not there',
    path: '/upload',
    init: post(list('/nowhere/a.png')),
    reason: 'the status says whose fault it is',
  },
  {
    what: 'a list, one of two is not there',
    path: '/upload',
    init: file => ({ method: 'POST', ...list(file, '/nowhere/a.png') }),
    reason: 'clients that match links with files by place would put in wrong ones',
  },
  { what: 'JSON that is none', path: '/upload', init: json('{'), reason: NOTHING_TO_LIST },
  { what: 'a list that is none', path: '/upload', init: json('{"list":"a"}'), reason: NOTHING_TO_LIST },
  {
    what: 'a form without files',
    path: '/upload',
    init: () => {
      const body = new FormData()
      body.append('name', 'a')
      return { method: 'POST', body }
    },
    reason: NOTHING_TO_LIST,
  },
  {
    what: 'an unknown destination',
    path: '/upload?picbed=nosuch',
    init: form({ 'a.png': DOT }, 'files'),
    reason: 'PicGo stores it somewhere else without a word',
  },
  {
    what: 'another address',
    path: '/nosuch',
    init: post({}),
    reason: 'programs that read JSON get to read why',
  },
]

/** What clients look at; texts, times and names are each server's own. */
async function ask(url: string, { path, init }: Request, file: string): Promise<string> {
  const response = await fetch(url + path, { signal: AbortSignal.timeout(10_000), ...init(file) })
  const text = await response.text()
  if (!response.headers.get('content-type')?.startsWith('application/json'))
    return `${response.status} ${response.headers.get('content-type')?.split(';')[0]}`
  const { success, result, items, message } = JSON.parse(text)
  const links = Array.isArray(result)
    ? `, ${result.length} in \`result\``
    : `, \`result\` ${result ?? 'missing'}`
  const more = Array.isArray(items) ? `, ${items.length} in \`items\`` : ''
  return `${response.status} \`success\` ${success}${links}${more}${message ? ', a message' : ''}`
}

it('answers as PicGo does, but for what docs/compatibility.md says (-u writes it)', async context => {
  const picgo = await startPicGo(context)
  const { url, directory } = await startApp()
  const file = join(directory, 'picture.png')
  await writeFile(file, DOT)
  const rows: string[] = []
  for (const request of REQUESTS) {
    const [theirs, ours] = [await ask(picgo, request, file), await ask(url, request, file)]
    const verdict = theirs === ours ? 'the same' : (request.reason ?? 'NO REASON GIVEN')
    rows.push(`| ${request.what} | ${theirs} | ${ours} | ${verdict} |`)
  }
  await expect(page(rows)).toMatchFileSnapshot('../docs/compatibility.md')
  expect(rows.filter(row => row.includes('NO REASON GIVEN'))).toEqual([])
})

const page = (rows: string[]) => `# Compared with PicGo and PicList

The same requests to PicGo 3.1.0, as npm has it, and to this server. \`test/compatibility.test.ts\` sends them in every run of
CI, and fails when an answer of either changes.

| Request | PicGo | upload-server | Why another one |
|---|---|---|---|
${rows.join('\n')}

PicList-Core's server can't be run beside it: the version that npm has of it (0.3.2) has none. What its documented clients
send is in \`test/clients\`, with what they look at in the answer.
`
