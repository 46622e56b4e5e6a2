import { describe, expect, it } from 'vitest'
import { FIELDS } from '../../src/routes/options.ts'
import { formOf, list, post } from '../helpers/form.ts'
import { shareApp, startApp, type TestApp } from '../helpers/start-app.ts'

const KEYS = { keyTemplate: '{path}/{filename}{extname}' }
const shared = shareApp({ config: KEYS })
const send = (app: TestApp, path: string, form = formOf({ 'a.txt': 'one' })) =>
  post(`${app.url}/upload?path=${encodeURIComponent(path)}`, { body: form })
const keyOf = (link = '') => decodeURIComponent(new URL(link).pathname.replace('/files/Default/', ''))

describe('the folder that a request asks for', () => {
  it.for([
    ['notes/2026/trip', 'notes/2026/trip/a.txt'],
    ['notes//./2026/', 'notes/2026/a.txt'],
    ['.', 'a.txt'],
    [' 旅行 / a b ', '旅行/a b/a.txt'],
    ['CON/.git/a:b*c/x\u0000y/…', '_CON/_.git/a_b_c/x_y/…/a.txt'],
    ['%2e%2e/...', '%2e%2e/_.../a.txt'],
  ])('%s becomes %s', async ([path, key]) => {
    expect(keyOf((await send(shared(), path as string)).result[0])).toBe(key)
  })

  it('stands in the default template, and vanishes without one', async () => {
    const app = await startApp()
    const [inFolder, outside] = [await send(app, 'notes'), await send(app, '')]
    expect(keyOf(inFolder.result[0])).toMatch(/^\d{4}\/\d\d\/notes\/a-\w{8}\.txt$/)
    expect(keyOf(outside.result[0])).toMatch(/^\d{4}\/\d\d\/a-\w{8}\.txt$/)
  })

  it('holds for lists, too', async () => {
    const app = await startApp({ config: KEYS })
    const answer = await post(`${app.url}/upload?path=x`, list('data:,one'))
    expect(keyOf(answer.result[0])).toMatch(/^x\/file/)
  })

  it.for([
    '../x',
    'a/../../x',
    'a/ .. /x',
    '/etc',
    ' /etc',
    'C:/x',
    'a\\..\\x',
    `${'a/'.repeat(16)}b`,
    'é'.repeat(257),
  ])('attack: %s never leaves the destination', async path => {
    const app = shared()
    const before = await app.files()
    expect(await send(app, path)).toMatchObject({ status: 400, code: 'invalid_request' })
    const form = formOf({ 'a.txt': 'one' })
    form.append('path', path)
    expect(await post(`${app.url}/upload`, { body: form })).toMatchObject({ status: 400 })
    expect(await app.files()).toEqual(before)
  })

  it('is refused where the template has no place for it, and says what to write', async () => {
    const app = await startApp({ config: { keyTemplate: '{filename}{extname}' } })
    const answer = await send(app, 'notes')
    expect(answer).toMatchObject({ status: 400, code: 'path_forbidden' })
    expect(answer.message).toContain('"keyTemplate" needs {path}')
  })
})

describe('the text field "path" of a form', () => {
  const formWith = (path: string) => {
    const form = formOf({ 'a.txt': 'one' })
    form.append('path', path)
    form.append('path', 'second')
    form.append('other', 'x')
    return form
  }

  it('counts, whether it stands before or behind the files, unless the query has one', async () => {
    const app = await startApp({ config: KEYS })
    const before = new FormData()
    before.append('path', 'notes')
    before.append('file', new Blob(['one']), 'a.txt')
    for (const form of [formWith('notes'), before])
      expect(keyOf((await post(`${app.url}/upload`, { body: form })).result[0])).toBe('notes/a.txt')
    expect(keyOf((await send(app, 'query', formWith('notes'))).result[0])).toBe('query/a.txt')
  })

  it('is ignored where the template has no place for it: clients that know nothing of this send such fields', async () => {
    const app = await startApp({ config: { keyTemplate: '{filename}{extname}' } })
    const answer = await post(`${app.url}/upload`, { body: formWith('C:\\Users\\me') })
    expect(keyOf(answer.result[0])).toBe('a.txt')
  })

  it('is read no further than an option is long', async () => {
    const app = await startApp({ config: KEYS })
    const answer = await post(`${app.url}/upload`, { body: formWith('a'.repeat(5_000_000)) })
    expect(answer).toMatchObject({ status: 400, message: '"path" must have up to 512 bytes.' })
  })

  it('is one of those that are kept', () => expect([...FIELDS]).toContain('path'))
})

it('counts to the request for an Idempotency-Key, as field and in the query', async () => {
  const app = await startApp({ config: KEYS })
  const headers = { 'Idempotency-Key': 'k1' }
  const ask = (query: string, field?: string) => {
    const body = formOf({ 'a.txt': 'one' })
    if (field) body.append('path', field)
    return post(`${app.url}/upload${query}`, { headers, body })
  }
  const first = await ask('?path=notes')
  expect((await ask('', 'notes')).result).toEqual(first.result)
  expect(await ask('', 'trip')).toMatchObject({ status: 422, code: 'idempotency_key_reused' })
  expect(await ask('')).toMatchObject({ status: 422 })
})
