import { execFileSync } from 'node:child_process'
import { chmod, mkdir, readdir, readFile, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { ask } from '../helpers/ask.ts'
import { makeDirectory } from '../helpers/directory.ts'
import { list, post, upload } from '../helpers/form.ts'
import { needs } from '../helpers/needs.ts'
import { startApp } from '../helpers/start-app.ts'
import { swap } from '../helpers/swap.ts'

const KEY = 'k3y-0f-the-server'
const KEYED = { 'X-Upload-Key': KEY, 'X-Forwarded-For': '203.0.113.9' }
const SECRET = 'nobody may read this'

/** How long each is tried. Without the mend most of these fail within a second. */
const LONGEST_MS = 8000

/** However busy the machine is. */
const LEAST = 100

/** Does something again and again, two at a time, until it has come between two exchanges at least once. */
async function repeat(
  times: number,
  work: (index: number) => Promise<unknown>,
  hasSucceeded: () => boolean,
): Promise<void> {
  const end = performance.now() + LONGEST_MS
  let index = 0
  const one = async () => {
    while (!hasSucceeded() || (index < times && (index < LEAST || performance.now() < end)))
      await work(index++)
  }
  await Promise.all([one(), one()])
}

/** A server that stores in and hands out `pictures`; outside lies a folder with a secret. */
async function start() {
  const directory = await makeDirectory()
  const [folder, outside] = [join(directory, 'pictures'), join(directory, 'outside')]
  await mkdir(join(folder, 'sub'), { recursive: true })
  await mkdir(outside)
  await writeFile(join(folder, 'sub/a.txt'), 'shared')
  await writeFile(join(outside, 'a.txt'), SECRET)
  const Default = { directory: folder, serve: true, keyTemplate: '{filename}{extname}' }
  const config = {
    default: 'local/Default',
    server: { key: KEY },
    sources: { path: { roots: [folder] } },
    providers: {
      local: {
        Default: { ...Default, durable: false },
        sub: { ...Default, keyTemplate: 'sub/{filename}{extname}' },
      },
    },
  }
  return { app: await startApp({ directory, config }), folder, outside }
}

describe('attack: somebody exchanges a folder for a link to another one again and again,', {
  timeout: 60_000,
}, () => {
  it('while a file in it is named by its path: nothing from outside is published', async () => {
    const { app, folder, outside } = await start()
    await swap(join(folder, 'sub'), outside)
    const sizes = new Set<number>()
    const work = async () => {
      const answer = await post(`${app.url}/upload`, { ...list(join(folder, 'sub/a.txt')), headers: KEYED })
      for (const { size } of answer.items ?? []) sizes.add(size)
    }
    await repeat(1000, work, () => sizes.size > 0)
    expect([...sizes]).toEqual(['shared'.length])
  })

  it('while a file in it is fetched: nothing from outside is handed out', async () => {
    const { app, folder, outside } = await start()
    await swap(join(folder, 'sub'), outside)
    const bodies = new Set<string>()
    const work = async () => {
      const { status, body } = await ask(app.url, 'GET', '/files/Default/sub/a.txt')
      if (status === 200) bodies.add(body)
    }
    await repeat(2000, work, () => bodies.size > 0)
    expect([...bodies]).toEqual(['shared'])
  })

  it('while the server stores in it: nothing is written outside', async () => {
    const { app, folder, outside } = await start()
    await swap(join(folder, 'sub'), outside)
    let stored = 0
    const work = async (index: number) => {
      const answer = await upload(`${app.url}/upload?configName=sub`, { [`${index}.txt`]: 'mine' })
      if (answer.status === 200) stored++
    }
    await repeat(600, work, () => stored > 0)
    expect(await readdir(outside)).toEqual(['a.txt'])
  })

  it('the one of its temporary files: nothing is written outside, and no other file is published', async () => {
    const { app, folder, outside } = await start()
    const bytes = 'x'.repeat(600_000)
    await upload(`${app.url}/upload`, { 'first.txt': bytes })
    const config = join(app.directory, 'upload-server.json')
    const before = await readFile(config, 'utf8')
    await chmod(config, 0o600)
    const [owner = ''] = await readdir(join(folder, '.upload-server'))
    await mkdir(join(outside, owner))
    for (let number = 1; number < 600; number += 2)
      await symlink(config, join(outside, owner, String(number)))
    await swap(join(folder, '.upload-server'), outside)
    let stored = 0
    const work = async (index: number) => {
      const name = `${index}.txt`
      const { status } = await upload(`${app.url}/upload`, { [name]: bytes })
      if (status !== 200) return
      stored++
      expect((await readFile(join(folder, name), 'utf8')) === bytes).toBe(true)
    }
    await repeat(250, work, () => stored > 0)
    expect(await readdir(join(outside, owner))).toHaveLength(300)
    expect(await readFile(config, 'utf8')).toBe(before)
    expect((await stat(config)).mode & 0o777).toBe(0o600)
  })
})

it('attack: somebody exchanges a file for a pipe: every request is answered', {
  timeout: 60_000,
}, async context => {
  needs(context, 'mkfifo', 'coreutils')
  const { app, folder } = await start()
  execFileSync('mkfifo', [join(folder, 'sub/a.txt-other')])
  await swap(join(folder, 'sub/a.txt'))
  const seen = new Set<number>()
  const work = async () => {
    const signal = AbortSignal.timeout(5000)
    const response = await fetch(`${app.url}/files/Default/sub/a.txt`, { signal })
    await response.text()
    seen.add(response.status)
    const answer = await post(`${app.url}/upload`, { ...list(join(folder, 'sub/a.txt')), headers: KEYED })
    seen.add(answer.status)
  }
  await repeat(2000, work, () => seen.has(200))
  expect([...seen].every(status => [200, 404, 403, 422].includes(status))).toBe(true)
  expect((await upload(`${app.url}/upload`, { 'last.txt': 'last' })).status).toBe(200)
})
