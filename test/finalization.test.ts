import { createHmac } from 'node:crypto'
import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { describe, expect, it } from 'vitest'
import { makeDirectory } from './helpers/directory.ts'
import { download, formOf, post, upload } from './helpers/form.ts'
import { startApp } from './helpers/start-app.ts'
import { serve } from './uploader/sources/servers.ts'

/** A hook that appends a line to a file for each run, and fails while the file `broken` is there. */
async function makeHook(directory: string) {
  const script = join(directory, 'hook.mjs')
  await writeFile(
    script,
    `import { appendFileSync, existsSync, readFileSync } from 'node:fs'
     const job = JSON.parse(readFileSync(0, 'utf8'))
     appendFileSync(process.argv[2], job.id + '\\n')
     if (existsSync(process.argv[2] + '.broken')) { console.error('no luck with marked-secret today'); process.exit(3) }`,
  )
  const make = (name: string) => ({
    hook: { name, command: [process.execPath, script, join(directory, name)] },
    runs: async () =>
      (await readFile(join(directory, name), 'utf8').catch(() => '')).split('\n').filter(Boolean),
    break: () => writeFile(join(directory, `${name}.broken`), ''),
    mend: () => rm(join(directory, `${name}.broken`)),
  })
  return make
}

type Hook = ReturnType<Awaited<ReturnType<typeof makeHook>>>

async function startWithHooks(count: number, directory?: string) {
  const place = directory ?? (await makeDirectory())
  const make = await makeHook(place)
  const hooks = Array.from({ length: count }, (_, n) => make(`hook${n}`))
  const config = { finalization: { hooks: hooks.map(one => one.hook) }, server: { key: 'marked-secret' } }
  const app = await startApp({ config, directory: place })
  return { app, hooks, finish: (id: string) => post(`${app.url}/upload?finalizationId=${id}`) }
}

const idOf = (answer: object) => (answer as { finalizationId: string }).finalizationId

it('a hook that fails is answered with exactly four members, the reason without secrets, and status 424', async () => {
  const { app, hooks } = await startWithHooks(1)
  await hooks[0]?.break()
  const response = await fetch(`${app.url}/upload`, { method: 'POST', body: formOf({ 'a.png': 'one' }) })
  expect(response.status).toBe(424)
  expect(await response.json()).toEqual({
    ...{ success: false, stage: 'finalization', finalizationId: expect.any(String) },
    message: `All files were stored, but hook "hook0" failed: exit code 3: no luck with [secret] today. Don't upload again: send finalizationId, or run "upload-server finalize".`,
  })
  expect(app.rawLog()).toContain('exit code 3')
})

it('a hook that fails is retried alone, also after a restart, and the answer is the one the upload would have had', async () => {
  const { app, hooks, finish } = await startWithHooks(2)
  const [fine, broken] = hooks as [Hook, Hook]
  await broken.break()
  const long = `${'a'.repeat(90)}.png`
  const id = idOf(await upload(`${app.url}/upload`, { [long]: 'one', 'b.png': 'two' }))
  expect(await finish(id)).toMatchObject({ status: 424, finalizationId: id })
  await app.server.stop()
  await broken.mend()
  const next = await startWithHooks(2, app.directory)
  const stored = await next.app.files()
  const done = await next.finish(id)
  expect(done).toMatchObject({ status: 200, success: true })
  expect(done.items.map(item => [item.index, item.origin])).toEqual([
    [0, long],
    [1, 'b.png'],
  ])
  expect((await download(done.result[1] ?? '')).toString()).toBe('two')
  expect(await next.app.files()).toEqual(stored)
  expect((await next.finish(id)).result).toEqual(done.result)
  const [first] = await fine.runs()
  expect([await fine.runs(), await broken.runs()]).toEqual([[first], [first, first, first]])
})

it('hooks are for whole uploads: one that failed in part runs none', async () => {
  const { app, hooks } = await startWithHooks(1)
  const body = JSON.stringify({ list: ['data:text/plain,hello', '/not/there.png'] })
  expect(await post(`${app.url}/upload`, { body })).toMatchObject({
    status: 422,
    result: [expect.any(String)],
  })
  expect(await hooks[0]?.runs()).toEqual([])
})

describe('hooks', () => {
  it('get key facts in the environment, and no setting of the server', async () => {
    const directory = await makeDirectory()
    const out = join(directory, 'env')
    const config = { finalization: { hooks: [{ name: 'env', command: ['sh', '-c', `env > ${out}`] }] } }
    const app = await startApp({
      config,
      directory,
      env: { PATH: process.env['PATH'] ?? '', UPLOAD_SERVER_KEY: 'marked-secret' },
    })
    const answer = await upload(`${app.url}/upload`, { 'a.png': 'one' })
    const env = await readFile(out, 'utf8')
    expect(env).toContain(`UPLOAD_URL=${answer.result[0]}`)
    expect(env).toContain('UPLOAD_DESTINATION=local/Default')
    expect(env).toContain('UPLOAD_COUNT=1')
    expect(env).not.toContain('marked-secret')
  })

  it('by webhook get the job as JSON, signed, with an Idempotency-Key that stays the same', async () => {
    const calls: { headers: Record<string, unknown>; body: string }[] = []
    const { origin, port } = await serve(async (req, res) => {
      calls.push({ headers: req.headers, body: await text(req) })
      res.writeHead(calls.length === 1 ? 503 : 200).end('nope')
    })
    const webhook = `${origin}/hook`
    const config = { finalization: { hooks: [{ name: 'chat', webhook, secret: 'sign-secret' }] } }
    const app = await startApp({ config })
    const failed = await upload(`${app.url}/upload`, { 'a.png': 'one' })
    expect(failed.message).toContain(`127.0.0.1:${port} returned 503: nope`)
    expect(failed.message).not.toMatch(/https?:/)
    const id = idOf(failed)
    const done = await post(`${app.url}/upload?finalizationId=${id}`)
    expect(done.status).toBe(200)
    expect(calls).toHaveLength(2)
    for (const { headers, body } of calls) {
      expect(headers['idempotency-key']).toBe(`${id}:chat`)
      const expected = createHmac('sha256', 'sign-secret').update(body).digest('hex')
      expect(headers['x-upload-signature']).toBe(`sha256=${expected}`)
      expect(JSON.parse(body)).toMatchObject({
        id,
        destination: 'local/Default',
        caller: 'loopback',
        files: [{ index: 0, origin: 'a.png', url: done.result[0], size: 3, type: 'text/plain' }],
      })
    }
  })
})
