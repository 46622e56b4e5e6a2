import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { ask, expectEnvelope, type Reply } from '../helpers/ask.ts'
import { download, upload } from '../helpers/form.ts'
import { makePicture } from '../helpers/picture.ts'
import { startApp, type TestApp } from '../helpers/start-app.ts'

const SXCU = '/upload-server.sxcu'
const KEY = 'k3y-0f-the-server'

/** A second server that uploads by the file of the first one. */
async function startUser(sxcu: string): Promise<TestApp> {
  const user = await startApp()
  const path = join(user.directory, 'user.sxcu')
  await writeFile(path, sxcu)
  return startApp({ config: { providers: { http: { first: { sxcu: path } } } } })
}

it('is a custom uploader that works', async () => {
  const app = await startApp({
    config: {
      default: 'local/a',
      providers: {
        local: {
          a: { directory: '/nowhere', urlPrefix: 'http://x.example' },
          'b {c}': { directory: './b', serve: true },
        },
      },
    },
  })
  const reply = await ask(app.url, 'GET', `${SXCU}?destination=local/b%20%7Bc%7D&key=${KEY}`)
  expectEnvelope(reply)
  expect(reply.headers['content-disposition']).toBe('attachment; filename=upload-server.sxcu')
  expect(reply.headers['content-type']).toBe('application/json; charset=utf-8')
  expect(reply.body).not.toContain(KEY)
  const file = makePicture()
  const user = await startUser(reply.body)
  const answer = await upload(`${user.url}/upload`, { 'a.png': file })
  expect(answer.message).toBeUndefined()
  expect(answer.result[0]).toMatch(`${app.url}/files/b%20%7Bc%7D/`)
  expect((await download(answer.result[0]!)).equals(file)).toBe(true)
})

it('has a place for the key where one is needed, and never the key itself', async () => {
  const keys = [{ name: 'ci', key: KEY }]
  const read = ({ body }: Reply) => JSON.parse(body)
  const [none, one, open] = [
    await startApp(),
    await startApp({ config: { auth: { keys } } }),
    await startApp({ config: { auth: { keys, anonymous: true } } }),
  ]
  expect(read(await ask(none.url, 'GET', SXCU))).not.toHaveProperty('Headers')
  expect(read(await ask(open.url, 'GET', SXCU))).not.toHaveProperty('Headers')
  for (const headers of [{}, { Authorization: `Bearer ${KEY}` }, { 'X-Forwarded-For': '203.0.113.9' }]) {
    const reply = await ask(one.url, 'GET', SXCU, { headers })
    expect(read(reply).Headers).toEqual({ Authorization: 'Bearer YOUR_KEY' })
    expect(reply.body).not.toContain(KEY)
  }
})

it('names the address that clients use', async () => {
  const app = await startApp({ config: { server: { publicUrl: 'https://img.example.com/up' } } })
  const { body } = await ask(app.url, 'GET', SXCU)
  expect(JSON.parse(body).RequestURL).toBe('https://img.example.com/up/upload')
  expect((await ask(app.url, 'POST', SXCU)).status).toBe(405)
})
