import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { makeDirectory } from '../helpers/directory.ts'
import { formOf, post } from '../helpers/form.ts'
import { spawnServer } from '../helpers/spawn-server.ts'
import { runBuilt } from './run-cli.ts'

/** Starts the built program, whose log the test may read, and end with SIGTERM. */
async function start(args: string[], config?: object, env: Record<string, string> = {}) {
  const directory = await makeDirectory()
  if (config) await writeFile(join(directory, 'upload-server.json'), JSON.stringify(config))
  const server = await spawnServer(args, { env, directory })
  return {
    ...{ directory, url: await server.url, process: server.process },
    log: (): Record<string, unknown>[] => server.lines.map(line => JSON.parse(line)),
    stop() {
      server.process.kill('SIGTERM')
      return server.exit
    },
  }
}

it('--version of the built program prints the version of the package', async () => {
  const { version } = JSON.parse(await readFile(new URL('../../package.json', import.meta.url), 'utf8'))
  const cwd = await makeDirectory()
  expect(await runBuilt(['--version'], { cwd })).toEqual({ code: 0, stdout: `${version}\n`, stderr: '' })
})

describe('the server', () => {
  it('says first where it listens, then what an operator should know, and goes on when the reader of its log goes away', async () => {
    const server = await start(['serve', '-p', '0'])
    expect(server.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/)
    const send = (text: string) => post(`${server.url}/upload`, { body: formOf({ 'a.txt': text }) })
    expect((await send('hello')).result[0]).toMatch(`${server.url}/files/Default/`)
    await expect.poll(() => server.log().length).toBeGreaterThan(1)
    expect(server.log()[0]).toMatchObject({ level: 'info', msg: `Listening on ${server.url}` })
    expect(server.log()[1]?.['msg']).toBe(
      `No destination is configured. Files are stored in ${join(server.directory, 'upload-server/files')} and served under /files/.`,
    )
    server.process.stdout?.destroy()
    for (const text of ['one', 'two', 'three']) expect(await send(text)).toMatchObject({ status: 200 })
    expect(await server.stop()).toBe(0)
  })

  it('takes flags before the environment and the environment before the file', async () => {
    const config = { log: { level: 'fatal' }, server: { host: '192.0.2.1', port: 1 } }
    const env = { UPLOAD_SERVER_LOG_LEVEL: 'info', UPLOAD_SERVER_HOST: '192.0.2.2' }
    const { url } = await start(['-p', '0', '--host', '::1'], config, env)
    expect(url).toMatch(/^http:\/\/\[::1\]:\d+$/)
  })

  it('warns of a short key if other machines can reach it, and of a careless destination', async () => {
    const careless = { url: 'https://127.0.0.1:1', insecureTls: true, urlPrefix: 'https://img.example.com' }
    const args = ['-p', '0', '--host', '0.0.0.0', '--key', 'a1b2c']
    const server = await start(args, { providers: { webdav: { careless } } })
    expect(await server.stop()).toBe(0)
    const [first, ...others] = server.log()
    expect(first?.['msg']).toMatch(/^Listening on /)
    expect(others.filter(({ level }) => level === 'warn').map(({ msg }) => msg)).toEqual([
      expect.stringMatching(/^server.key is too short/),
      expect.stringMatching(/careless.*insecureTls/),
    ])
  })
})
