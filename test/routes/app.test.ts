import { randomBytes } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { download, list, post, upload } from '../helpers/form.ts'
import { makePicture } from '../helpers/picture.ts'
import { startApp } from '../helpers/start-app.ts'

it('stores a form file and serves it under the link it answers', async () => {
  const app = await startApp()
  const bytes = randomBytes(100_000)
  const answer = await upload(`${app.url}/upload`, { 'pic.bin': bytes })
  expect(answer).toMatchObject({ status: 200, success: true })
  expect(answer.result).toHaveLength(1)
  expect((await download(answer.result[0]!)).equals(bytes)).toBe(true)
})

it('stores a file named by its path', async () => {
  const app = await startApp()
  const path = join(app.directory, 'a b.txt')
  await writeFile(path, 'hello')
  const answer = await post(`${app.url}/upload`, list(path))
  expect(answer.items).toMatchObject([
    { index: 0, origin: path, size: 5, provider: 'local', type: 'local', contentType: 'text/plain' },
  ])
  expect((await download(answer.result[0]!)).toString()).toBe('hello')
})

it('stores a picture that is empty or none with a warning in the answer', async () => {
  const app = await startApp({ config: { keyTemplate: '{filename}{extname}' } })
  const files = { 'empty.png': '', 'page.GIF': 'text', 'a.txt': '', 'real.jpg': makePicture() }
  const answer = await upload(`${app.url}/upload`, files)
  expect(answer.status).toBe(200)
  expect(answer.items.map(item => (item as { warning?: string }).warning)).toEqual([
    '"empty.png" was stored, but is empty.',
    '"page.GIF" was stored, but is text/plain by its bytes, not an image.',
    undefined,
    undefined,
  ])
})

it('keeps 100 overlapping uploads of different bytes under one name apart', async () => {
  const app = await startApp()
  const files = Array.from({ length: 100 }, () => randomBytes(20_000))
  const answers = await Promise.all(files.map(bytes => upload(`${app.url}/upload`, { 'same.png': bytes })))
  const urls = answers.map(answer => answer.result[0]!)
  expect(new Set(urls).size).toBe(100)
  for (const [index, bytes] of files.entries())
    expect((await download(urls[index]!)).equals(bytes)).toBe(true)
})
