import { describe, expect, it } from 'vitest'
import { ask } from '../helpers/ask.ts'
import { download } from '../helpers/form.ts'
import { makePicture } from '../helpers/picture.ts'
import { shareApp, startApp } from '../helpers/start-app.ts'

const plain = shareApp()
const bare = shareApp({ config: { keyTemplate: '{filename}{extname}' } })
const TEXT = { Accept: 'text/plain' }
const list = (...entries: string[]) => JSON.stringify({ list: entries })

describe('a client that accepts text/plain only', () => {
  it('gets one address a line, in order', async () => {
    const app = plain()
    const body = list('data:,one', 'data:,two')
    const reply = await ask(app.url, 'POST', '/upload', { headers: TEXT, body })
    expect(reply.status).toBe(200)
    expect(reply.headers['content-type']).toBe('text/plain; charset=utf-8')
    const [one, two, end] = reply.body.split('\n')
    expect([String(await download(one!)), String(await download(two!)), end]).toEqual(['one', 'two', ''])
  })

  it('gets the links of what was stored, and no more than the status of what failed', async () => {
    const app = plain()
    const body = list('data:,one', '/no/such/file')
    const reply = await ask(app.url, 'POST', '/upload', { headers: { Accept: 'text/*;q=0.5' }, body })
    expect(reply.status).toBe(422)
    const [one, end] = reply.body.split('\n')
    expect([String(await download(one!)), end]).toEqual(['one', ''])
  })

  it.for([
    ['?picbed=nowhere', '{}', 400, /^Provider "nowhere" does not exist.*\.\n$/],
    ['', 'no JSON', 400, /^The body is neither a form nor JSON.*\.\n$/],
    ['?finalizationId=nothing', '', 404, /^No pending upload.*\.\n$/],
  ] as const)('gets the refusal of %s in words', async ([query, body, status, words]) => {
    const app = plain()
    const reply = await ask(app.url, 'POST', `/upload${query}`, { headers: TEXT, body })
    expect(reply).toMatchObject({ status, body: expect.stringMatching(words) })
    expect(reply.headers['content-type']).toBe('text/plain; charset=utf-8')
  })

  it('gets the id to finish an upload with', async () => {
    const hooks = [{ name: 'never', command: ['false'] }]
    const app = await startApp({ config: { finalization: { hooks } } })
    const reply = await ask(app.url, 'POST', '/upload', { headers: TEXT, body: list('data:,one') })
    expect(reply.status).toBe(424)
    expect(reply.body).toMatch(/^All files were stored, but hook .*\nfinalizationId: [\w-]{36}\n$/)
  })
})

describe('a request that says how its answer is written', () => {
  const picture = Buffer.from(makePicture())
  const put = async (target: string, headers = {}) => {
    return ask(bare().url, 'PUT', target, { headers, body: picture })
  }

  it.for([
    ['text', 'text/plain', /^http:\/\/\S+\/a%20_b%5D\.png\n$/],
    ['Markdown', 'text/markdown', /^!\[a \\<b\\\]\.png\]\(http:\S+\)\n$/],
    ['html', 'text/plain', /^<img src="http:\S+" alt="a &lt;b\]\.png">\n$/],
    ['bbcode', 'text/plain', /^\[img\]http:\S+\[\/img\]\n$/],
  ] as const)('gets %s', async ([reply, type, body]) => {
    const answer = await put(`/upload/a%20%3Cb%5D.png?reply=${reply}`, { Accept: 'application/json' })
    expect(answer.headers['content-type']).toBe(`${type}; charset=utf-8`)
    expect(answer.body).toMatch(body)
  })

  it('gets JSON when it asks for it, whatever it accepts', async () => {
    const answer = await put('/upload/a.png?reply=json', TEXT)
    expect(JSON.parse(answer.body)).toMatchObject({ success: true })
  })

  it('gets Markdown for what it accepts', async () => {
    const answer = await put('/upload/a.png', { Accept: 'text/markdown' })
    expect(answer.body).toMatch(/^!\[a\.png\]\(http:\S+\)\n$/)
  })

  it('is refused what there is not', async () => {
    const answer = await put('/upload/a.png?reply=xml')
    expect(answer.status).toBe(400)
    expect(JSON.parse(answer.body).message).toBe('"reply" must be json, text, markdown, html, bbcode.')
  })

  it('links what is no picture, and reads the message when nothing was stored', async () => {
    const app = plain()
    const one = await ask(app.url, 'POST', '/upload?reply=markdown', { body: list('data:,one') })
    expect(one.body).toMatch(/^\[file-\w+\.txt\]\(http:\S+\)\n$/)
    const none = await ask(app.url, 'POST', '/upload?reply=html', { body: list('/no/such/file') })
    expect(none).toMatchObject({
      status: 422,
      body: expect.stringMatching(/^"\/no\/such\/file" does not exist.*\n$/),
    })
  })
})

it.for([
  '*/*',
  'application/json',
  'application/json, text/plain, */*',
  'text/plain, application/json, application/*+json, */*',
  'text/plain, */*; q=0.01',
  'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8',
  'image/png',
])('JSON goes to those who accept %s', async accept => {
  const app = plain()
  for (const body of [list('data:,one'), 'no JSON']) {
    const reply = await ask(app.url, 'POST', '/upload', { headers: { Accept: accept }, body })
    expect(reply.headers['content-type']).toBe('application/json; charset=utf-8')
    expect(JSON.parse(reply.body)).toHaveProperty('success')
  }
})

it('JSON stays elsewhere', async () => {
  const app = plain()
  for (const target of ['/heartbeat', '/nowhere']) {
    const reply = await ask(app.url, 'GET', target, { headers: TEXT })
    expect(JSON.parse(reply.body)).toHaveProperty('success')
  }
})
