import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { TextDecoder } from 'node:util'
import { queryObjects } from 'node:v8'
import { describe, expect, it } from 'vitest'
import { excerpt } from '../../src/http/excerpt.ts'
import { cleanFileName } from '../../src/payload/file-name.ts'
import { parsePartHeader } from '../../src/routes/part-header.ts'
import { expectFailure } from '../helpers/expect-answer.ts'
import { post } from '../helpers/form.ts'
import { startApp } from '../helpers/start-app.ts'

// What takes quadratic time takes minutes here, and the time limit of the test ends it.
describe('attack: a text that takes quadratic time', () => {
  it('in the path of a request without a key', async () => {
    const app = await startApp()
    const path = 'a-'.repeat(7500)
    const answers = await Promise.all(Array.from({ length: 50 }, () => fetch(`${app.url}/${path}`)))
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([404]))
  })

  it.each([
    ['the scheme of a list entry', `${'a-'.repeat(500_000)}:x`],
    ['the name of a missing file', `/${'a-'.repeat(500_000)}`],
  ])('in %s', async (_, entry) => {
    const app = await startApp()
    const answer = await post(`${app.url}/upload`, { body: JSON.stringify({ list: [entry] }) })
    expect(answer.status).toBe(400)
    expect(app.rawLog().length).toBeLessThan(20_000)
  })

  it.each(['a-', '<', '<script>', '<signature>', '<signature', '*a', 'x', 'authorization:"\\"'])(
    'in an answer of 1 MiB: %j',
    pump => {
      expect(excerpt(pump.repeat((1024 * 1024) / pump.length)).length).toBeLessThan(1000)
    },
  )

  it.each([
    ['15 000 dots', `${'.'.repeat(15_000)}a`],
    ['dots and blanks', `${'. '.repeat(7500)}a`],
    ['marks in the wrong order', `a${'\u0300'.repeat(4000)}${'\u0316'.repeat(4000)}.png`],
  ])('in 200 file names: %s', (_, name) => {
    for (let i = 0; i < 200; i++) expect(Buffer.byteLength(cleanFileName(name, '.png'))).toBeLessThan(201)
  })
})

describe('attack: JSON that takes many times its size in memory', () => {
  it('16 MB of brackets', async () => {
    const app = await startApp()
    const answer = await post(`${app.url}/upload`, { body: '['.repeat(16 * 1024 * 1024) })
    expectFailure(answer, 400, 'invalid_request')
    expect(answer.message).toContain('nested')
  })

  it.each([
    ['objects', `{"other":[${'{},'.repeat(1_000_000)}{}]}`],
    ['members', `{${Array.from({ length: 200_000 }, (_, index) => `"${index}":1`).join()}}`],
    ['entries', `{"list":[${'"",'.repeat(1_000_000)}""]}`],
  ])('a million %s', async (_, body) => {
    const app = await startApp()
    expectFailure(await post(`${app.url}/upload`, { body }), 413, 'too_large')
  })

  it('brackets and commas in a string are none', async () => {
    const app = await startApp()
    const body = JSON.stringify({ list: [`data:,${'[{,"\\'.repeat(20_000)}`], more: { b: [[[1]]] } })
    expect(await post(`${app.url}/upload`, { body })).toMatchObject({ status: 200 })
  })
})

it('attack: a character set in 4096 spellings', () => {
  for (let spelling = 0; spelling < 4096; spelling++) {
    const charset = [...'windows-1252'].map((letter, bit) =>
      (spelling >> bit) & 1 ? letter.toUpperCase() : letter,
    )
    parsePartHeader(Buffer.from(`Content-Disposition: form-data; filename*=${charset.join('')}''a.png`))
  }
  expect(queryObjects(TextDecoder, { format: 'count' })).toBeLessThan(200)
})

describe('attack: data: addresses that fill the store', () => {
  const body = JSON.stringify({
    list: Array.from({ length: 10 }, (_, index) => `data:text/plain,${index}${'x'.repeat(1024 * 1024)}`),
  })
  const headers = { 'Idempotency-Key': 'ten' }

  it('ten of 1 MB leave little, and every answer repeats them whole', async () => {
    const app = await startApp({ config: { database: { path: 'store.db' } } })
    const first = await post(`${app.url}/upload`, { body, headers })
    expect(first.items.map(item => item.origin)).toEqual(JSON.parse(body).list)
    expect((await post(`${app.url}/upload`, { body, headers })).items).toEqual(first.items)
    await app.server.stop()
    expect((await stat(join(app.directory, 'store.db'))).size).toBeLessThan(512 * 1024)
    const server = { port: Number(new URL(app.url).port) }
    const next = await startApp({
      config: { server, database: { path: 'store.db' } },
      directory: app.directory,
    })
    expect((await post(`${next.url}/upload`, { body, headers })).items).toEqual(first.items)
  })
})
