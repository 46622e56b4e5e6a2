import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { type ClientUpload, createClient, type Upload, type Uploaded } from '../../src/client/index.ts'
import { makeDirectory } from '../helpers/directory.ts'
import { download } from '../helpers/form.ts'
import { makePicture } from '../helpers/picture.ts'
import { runProgram } from '../helpers/run-program.ts'
import { startApp } from '../helpers/start-app.ts'
import { serve } from '../uploader/sources/servers.ts'

const CONFIG = {
  server: { key: 'of-the-program' },
  auth: { loopbackExempt: false },
  keyTemplate: '{path}/{filename}{extname}',
}

async function prepare(options: object = {}) {
  const app = await startApp({ config: CONFIG })
  const client = createClient({ server: app.url, key: 'of-the-program', env: {}, ...options })
  onTestFinished(() => client.close())
  return { app, client, cwd: await makeDirectory() }
}

async function uploadAll(
  client: ReturnType<typeof createClient>,
  uploads: Iterable<Upload>,
  options?: ClientUpload,
) {
  const results: Uploaded[] = []
  for await (const result of client.upload(uploads, options)) results[result.index] = result
  return results
}

it('a program uploads files, bytes and URLs, and gets a result for each', async () => {
  const { app, client, cwd } = await prepare()
  await writeFile(join(cwd, '*.txt'), 'a star')
  await mkdir(join(cwd, 'folder'))
  const { origin: far } = await serve((_, res) => res.end('from afar'))
  const results = await uploadAll(
    client,
    [
      join(cwd, '*.txt'),
      { path: join(cwd, '*.txt'), name: 'renamed.txt' },
      { content: Buffer.from('bytes'), name: 'bytes.txt' },
      { content: Buffer.alloc(0), name: 'empty.txt' },
      `${far}/far.txt`,
      join(cwd, 'absent.txt'),
      join(cwd, 'folder'),
    ],
    { path: 'shots' },
  )
  const base = `${app.url}/files/Default/shots`
  const links = results.map(({ url, error }) => url?.replace(base, '') ?? error)
  expect(links.slice(0, 4)).toEqual(['/_.txt', '/renamed.txt', '/bytes.txt', '/empty.txt'])
  expect(links.slice(5)).toEqual(['the file does not exist', 'it is a folder'])
  expect(results.map(({ index }) => index)).toEqual([0, 1, 2, 3, 4, 5, 6])
  expect(results[2]).toMatchObject({ name: 'bytes.txt', size: 5, contentType: 'text/plain' })
  expect((await download(results[2]?.url ?? '')).toString()).toBe('bytes')
})

it('a loop that is left early ends what is in progress, and the process need not wait', async () => {
  const { client } = await prepare({ concurrency: 1 })
  const uploads = Array.from({ length: 50 }, (_, index) => ({
    content: Buffer.alloc(100_000, `${index}`),
    name: `${index}.txt`,
  }))
  let count = 0
  for await (const { url } of client.upload(uploads)) {
    expect(url).toMatch(/^http/)
    count++
    break
  }
  expect(count).toBe(1)
})

it('an aborted upload ends without an exception, and names no file that it did not store', async () => {
  const { client } = await prepare()
  const stopped = new AbortController()
  stopped.abort()
  const results: Uploaded[] = []
  for await (const result of client.upload([{ content: Buffer.from('x'), name: 'x' }], {}, stopped.signal))
    results.push(result)
  expect(results).toEqual([])
})

it.each([
  ['a token', 'opaque'],
  ['a function that gets one', async () => 'opaque'],
])('%s is sent instead of a key, and a rejection is told', async (_, token) => {
  const sent: (string | undefined)[] = []
  const { origin: server } = await serve((req, res) => {
    sent.push(req.headers.authorization)
    const body = { success: false, code: 'unauthorized', message: 'The token is wrong.' }
    req.resume().on('end', () => res.writeHead(401).end(JSON.stringify(body)))
  })
  const client = createClient({ server, token, env: {} })
  onTestFinished(() => client.close())
  const [result] = await uploadAll(client, [{ content: Buffer.from('x'), name: 'x' }])
  expect(result).toMatchObject({
    code: 'unauthorized',
    error: expect.stringContaining('The token is wrong.'),
  })
  expect(new Set(sent)).toEqual(new Set(['Bearer opaque']))
  expect(sent.length).toBe(typeof token === 'string' ? 1 : 2)
})

it('finalize of an upload that is not pending is an error with the message of the server', async () => {
  const { client } = await prepare()
  await expect(client.finalize('nobody')).rejects.toThrow('No pending upload has this finalizationId.')
})

it('a token that can not be had is the error of each file', async () => {
  const token = async () => Promise.reject(new Error('the vault is closed'))
  const client = createClient({ server: 'http://127.0.0.1:9', token, env: {}, retryFor: 0 })
  onTestFinished(() => client.close())
  const [result] = await uploadAll(client, [{ content: Buffer.from('x'), name: 'x' }])
  expect(result).toMatchObject({
    code: 'no_token',
    error: 'The option "token" returned no token: the vault is closed.',
  })
})

it('the example of its page uploads with the built package', async () => {
  const { app, cwd } = await prepare()
  const page = await readFile('docs/reference/client.md', 'utf8')
  const example = /^```js\n(.*?)^```/ms.exec(page)?.[1]?.replace('https://img.example.com', app.url) ?? ''
  await mkdir(join(cwd, 'node_modules'))
  await symlink(process.cwd(), join(cwd, 'node_modules', 'upload-server'))
  await writeFile(join(cwd, 'upload.mjs'), example)
  await writeFile(join(cwd, 'a.png'), makePicture())
  const env = { UPLOAD_SERVER_KEY: 'of-the-program' }
  const { exitCode, stdout } = await runProgram(process.execPath, ['upload.mjs'], { cwd, env })
  expect(exitCode).toBe(0)
  expect(stdout).toMatch(/^a\.png http\S+\/a\.png$/m)
  expect(stdout).toMatch(/^note\.txt http\S+\/note\.txt$/m)
})

it('a warning of plain http is passed on', () => {
  const warnings: string[] = []
  const onWarning = (message: string) => void warnings.push(message)
  createClient({ server: 'http://img.invalid', key: 'k', env: {}, onWarning }).close()
  expect(warnings).toEqual([
    expect.stringContaining('the upload key is sent to img.invalid over unencrypted http'),
  ])
})

/** Paths of files with one text each. */
const makeTexts = (cwd: string, count: number) =>
  Promise.all(
    Array.from({ length: count }, async (_, n) => {
      const path = join(cwd, `${n}.txt`)
      await writeFile(path, `text ${n}`)
      return path
    }),
  )

it('from 20 files on, what the server has is not sent again', async () => {
  const { app, client, cwd } = await prepare()
  const paths = await makeTexts(cwd, 25)
  const before = await uploadAll(client, paths)
  const sentBefore = app.log.length
  for (const n of [3, 7]) await writeFile(paths[n] ?? '', `changed ${n}`)
  const after = await uploadAll(client, paths)
  const lines = app.log.slice(sentBefore).filter(line => 'destination' in line)
  const of = (path: string) => lines.filter(line => (line['req'] as { path: string }).path === path)
  expect(of('/upload/known')).toMatchObject([{ inputs: 25, known: 23 }])
  expect(of('/upload').reduce((sum, line) => sum + Number(line['inputs']), 0)).toBe(2)
  expect(after.map(({ error, name }) => error ?? name)).toEqual(before.map(({ name }) => name))
  const kept = (results: Uploaded[]) =>
    results.flatMap(({ index, url, sha256 }) => (index === 3 || index === 7 ? [] : [url, sha256]))
  expect(kept(after)).toEqual(kept(before))
})

it.each([
  ['can not tell what it has, such as PicGo', 404, { success: false }],
  ['fails when it is asked what it has', 502, {}],
  ['tells of one file only', 200, { success: true, files: [{ url: 'https://img.example/of-another' }] }],
])('a server that %s gets all files', async (_, status, answer) => {
  const known: unknown[] = []
  const { origin: server } = await serve((req, res) => {
    const isQuestion = req.url?.startsWith('/upload/known')
    if (isQuestion) known.push(req.url)
    const body = isQuestion ? answer : { success: true, result: ['https://img.example/a'] }
    req.resume().on('end', () => res.writeHead(isQuestion ? status : 200).end(JSON.stringify(body)))
  })
  const client = createClient({ server, env: {} })
  onTestFinished(() => client.close())
  const results = await uploadAll(client, await makeTexts(await makeDirectory(), 20))
  expect(results.map(({ url }) => url)).toEqual(results.map(() => 'https://img.example/a'))
  expect(known).toHaveLength(1)
})
