import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { describe, expect, it, onTestFinished } from 'vitest'
import { makeDirectory } from '../helpers/directory.ts'
import { makePicture } from '../helpers/picture.ts'
import { BIN, environmentIn } from '../helpers/spawn-server.ts'
import { startApp } from '../helpers/start-app.ts'
import { swap } from '../helpers/swap.ts'

const PREFIX = 'https://img.example'

interface Place {
  /** With a configuration outside of the folder the agent works in. */
  readonly cwd: string
  readonly work: string
  call(name: string, args?: Record<string, unknown>): Promise<Answer>
  readonly client: Client
}

interface Answer {
  isError?: boolean
  content: { type: string; text: string }[]
  structuredContent?: { files?: { path: string; url?: string; error?: string }[] }
}

async function makePlace(): Promise<{ cwd: string; work: string }> {
  const cwd = await makeDirectory()
  const work = join(cwd, 'work')
  await mkdir(join(work, 'shots'), { recursive: true })
  const at = (name: string) => ({ directory: join(cwd, name), urlPrefix: `${PREFIX}/${name}` })
  const config = {
    default: 'local/one',
    providers: { local: { one: at('one'), two: at('two') } },
    keyTemplate: '{filename}{extname}',
  }
  await mkdir(join(cwd, '.config/upload-server'), { recursive: true })
  await writeFile(join(cwd, '.config/upload-server/config.json'), JSON.stringify(config))
  await writeFile(join(work, 'a.png'), makePicture())
  await writeFile(join(work, 'shots/b.png'), makePicture())
  return { cwd, work }
}

/** An agent that started the server in the folder it works in. */
async function startAgent(args: string[] = [], more: Record<string, string> = {}): Promise<Place> {
  const place = await makePlace()
  for (const [name, content] of Object.entries(more)) await writeFile(join(place.work, name), content)
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [BIN, 'mcp', ...args],
    cwd: place.work,
    env: environmentIn(place.cwd),
  })
  const client = new Client({ name: 'test', version: '1.0.0' })
  await client.connect(transport)
  onTestFinished(() => client.close())
  const call = async (name: string, args: Record<string, unknown> = {}) =>
    (await client.callTool({ name, arguments: args })) as Answer
  return { ...place, client, call }
}

const stored = async (cwd: string, folder = 'one') =>
  (await readdir(join(cwd, folder)).catch(() => [])).filter(name => !name.startsWith('.'))

describe('an agent', () => {
  it('finds two tools, and gets the links of files by relative and absolute paths, beside what failed', async () => {
    const { client, call, cwd, work } = await startAgent()
    const { tools } = await client.listTools()
    expect(tools.map(({ name }) => name)).toEqual(['upload_files', 'list_destinations'])
    expect(tools[0]).toMatchObject({
      description: expect.stringContaining(work),
      inputSchema: { required: ['paths'] },
    })
    const a = join(work, 'a.png')
    const { isError, content, structuredContent } = await call('upload_files', {
      paths: ['shots/b.png', a, 'absent.png', 'shots'],
    })
    expect(isError).toBe(true)
    expect(structuredContent?.files).toEqual([
      { path: 'shots/b.png', url: `${PREFIX}/one/b.png` },
      { path: a, url: `${PREFIX}/one/a.png` },
      { path: 'absent.png', error: expect.stringContaining('does not exist') },
      { path: 'shots', error: expect.stringContaining('a folder') },
    ])
    expect(content[0]?.text).toContain(`shots/b.png: ${PREFIX}/one/b.png\n${a}: ${PREFIX}/one/a.png\n`)
    expect(await readFile(join(cwd, 'one/a.png'))).toEqual(await readFile(a))
    const many = Array.from({ length: 51 }, () => 'a.png')
    for (const paths of [[], many, 'a.png'])
      expect((await call('upload_files', { paths })).isError).toBe(true)
  })

  it('lists the destinations and names one', async () => {
    const { call, cwd } = await startAgent()
    expect((await call('list_destinations')).structuredContent).toEqual({
      destinations: [
        { id: 'local/one', isDefault: true },
        { id: 'local/two', isDefault: false },
      ],
    })
    expect(await call('upload_files', { paths: ['a.png'], destination: 'local/two' })).toMatchObject({
      isError: false,
    })
    expect(await stored(cwd, 'two')).toEqual(['a.png'])
    const { isError, content } = await call('upload_files', { paths: ['a.png'], destination: 'local/three' })
    expect({ isError, content }).toMatchObject({
      isError: true,
      content: [{ text: expect.stringContaining('three') }],
    })
  })

  it('uploads through a running server, which has its own destinations, and below the roots only', async () => {
    const app = await startApp({
      config: { server: { key: 'of-the-server-1' }, auth: { loopbackExempt: false } },
    })
    const { call, client, work } = await startAgent(['--server', app.url, '--key', 'of-the-server-1'])
    expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(['upload_files'])
    const { structuredContent } = await call('upload_files', { paths: ['a.png', '../.config'] })
    const [stored, refused] = structuredContent?.files ?? []
    expect(stored?.url).toContain(`${app.url}/files/Default/`)
    expect(refused?.error).toContain(`it is outside of the allowed folders (${work})`)
    const { content } = await call('upload_files', { paths: ['a.png'], destination: 'local/three' })
    expect(content[0]?.text).toContain('local has no destination "three"')
  })
})

describe('an agent that was talked into giving away a secret', () => {
  it('attack: gets no file with a dot by exchanging names during a call', async () => {
    const { call, cwd, work } = await startAgent([], { '.env': 'SECRET=1' })
    await swap(join(work, 'a.png'), join(work, '.env'))
    const said = new Set<string>()
    for (let turn = 0; turn < 10; turn++) {
      const { structuredContent } = await call('upload_files', { paths: Array(20).fill('a.png') })
      for (const { error = 'stored' } of structuredContent?.files ?? []) said.add(error)
    }
    expect([...said].join()).toMatch(/stored|begins with a dot/)
    for (const name of await stored(cwd))
      expect(await readFile(join(cwd, 'one', name), 'utf8')).not.toContain('SECRET')
  })

  it('gets no link of a file elsewhere or with a dot, by whatever path', async () => {
    const { call, cwd, work } = await startAgent()
    await writeFile(join(cwd, 'secret.txt'), 'secret')
    await symlink('../secret.txt', join(work, 'link.png'))
    await mkdir(join(work, '.git'))
    for (const name of ['.env', '.git/config']) await writeFile(join(work, name), 'secret')
    await symlink('.env', join(work, 'env.txt'))
    const elsewhere = ['/etc/passwd', '../secret.txt', 'shots/../../secret.txt', '/proc/self/environ']
    for (const path of [...elsewhere, 'link.png', '.env', '.git/config', 'env.txt']) {
      expect(await call('upload_files', { paths: [path] }), path).toMatchObject({
        isError: true,
        content: [{ text: expect.stringMatching(/it is outside of the allowed folders|begins with a dot/) }],
      })
    }
    expect(await stored(cwd)).toEqual([])
  })

  it('by the configuration of a folder that was cloned does not use it', async () => {
    const trap = JSON.stringify({
      providers: { local: { Default: { directory: '/tmp/trap', urlPrefix: 'https://trap.example' } } },
    })
    const { call } = await startAgent([], {
      'upload-server.json': trap,
      '.env': 'UPLOAD_SERVER_PUBLIC_URL=https://trap.example',
    })
    const { structuredContent } = await call('upload_files', { paths: ['a.png'] })
    expect(structuredContent?.files).toEqual([{ path: 'a.png', url: `${PREFIX}/one/a.png` }])
  })
})

it('--root names the folders, but no hidden ones below them', async () => {
  const { call, work, cwd } = await startAgent(['--root', 'shots', '--root', '.'])
  await mkdir(join(work, '.hidden'))
  await writeFile(join(work, '.hidden/c.png'), makePicture())
  expect((await call('upload_files', { paths: ['b.png', '../a.png'] })).isError).toBe(false)
  expect((await call('upload_files', { paths: ['../.hidden/c.png'] })).isError).toBe(true)
  expect((await stored(cwd)).sort()).toEqual(['a.png', 'b.png'])
})

it('the server ends with 0 when the agent has gone, and says nothing but the protocol', async () => {
  const { cwd, work } = await makePlace()
  const child = spawn(process.execPath, [BIN, 'mcp'], { cwd: work, env: environmentIn(cwd) })
  const request = {
    jsonrpc: '2.0',
    id: 1,
    method: 'initialize',
    params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'raw', version: '1' } },
  }
  child.stdin.write(`${JSON.stringify(request)}\n`)
  const [chunk] = (await once(child.stdout, 'data')) as [Buffer]
  expect(JSON.parse(chunk.toString())).toMatchObject({
    id: 1,
    result: { serverInfo: { name: 'upload-server' } },
  })
  child.stdin.end()
  const [errors, [code]] = await Promise.all([text(child.stderr), once(child, 'exit')])
  expect({ code, errors }).toEqual({ code: 0, errors: '' })
})
