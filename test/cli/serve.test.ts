import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { makeDirectory } from '../helpers/directory.ts'
import { formOf, post } from '../helpers/form.ts'
import { spawnServer } from '../helpers/spawn-server.ts'
import { runBuilt, runCli } from './run-cli.ts'

async function start(args: string[], directory?: string, env: Record<string, string> = {}) {
  const server = await spawnServer(args, { env, ...(directory !== undefined && { directory }) })
  return {
    url: await server.url,
    process: server.process,
    log: (): Record<string, unknown>[] => server.lines.map(line => JSON.parse(line)),
    /** Sends a signal and answers how it ended. */
    stop(signal: NodeJS.Signals = 'SIGTERM') {
      server.process.kill(signal)
      return server.exit
    },
  }
}

async function withConfig(config: unknown): Promise<string> {
  const cwd = await makeDirectory()
  await writeFile(join(cwd, 'upload-server.json'), JSON.stringify(config))
  return cwd
}

it('--version of the built program prints the version of the package', async () => {
  const { version } = JSON.parse(await readFile(new URL('../../package.json', import.meta.url), 'utf8'))
  const cwd = await makeDirectory()
  expect(await runBuilt(['--version'], { cwd })).toEqual({ code: 0, stdout: `${version}\n`, stderr: '' })
})

describe('what is wrong on the command line ends with 1 and a sentence', () => {
  it.each<[string[], string]>([
    [['--prot', '1'], "unknown option '--prot'"],
    [['serve', '--nope'], "unknown option '--nope'"],
    [['uplaod', 'a.png'], 'unknown command \'uplaod\'. Did you mean "upload"?'],
    [['serve', 'now'], "unknown command 'now'"],
    [['a.png', 'b c.png'], "'a.png' is not a command. To upload it: upload-server upload a.png 'b c.png'"],
    [['https://me:secret@x.example/a.png'], 'To upload it: upload-server upload https://x.example/a.png'],
    [['--port'], "option '-p, --port <port>' argument missing"],
    [['--port', 'http'], 'The port must be a number from 0 to 65535.'],
    [['--port', '65536'], 'The port must be a number from 0 to 65535.'],
    [['--port=-1'], 'The port must be a number from 0 to 65535.'],
    [['--port', '1.5'], 'The port must be a number from 0 to 65535.'],
    [['--port', '0x50'], 'The port must be a number from 0 to 65535.'],
    [['--port', ''], 'The port must be a number from 0 to 65535.'],
    [['--log-level', 'loud'], 'log.level: must be one of: "fatal", "error"'],
    [['--key', ''], 'server.key: must not be empty'],
    [['--config', 'absent.json'], 'absent.json: no such file'],
    [['--config', '.'], ': it is a directory'],
    [['config', 'nope'], 'nope'],
    [['heartbeat', '--server', 'http://'], 'Must be a URL such as http://127.0.0.1:36677.'],
  ])('%j', async (args, message) => {
    const { code, stdout, stderr } = await runCli(args, { cwd: await makeDirectory() })
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr).toContain(message)
  })
})

describe('what is wrong in the configuration ends with 1', () => {
  it('and names the provider in use that a PicGo file speaks of and this version does not have', async () => {
    const cwd = await withConfig({ picBed: { uploader: 'some-plugin', 'some-plugin': { token: 'hunter2' } } })
    const { code, stderr } = await runCli([], { cwd })
    expect(code).toBe(1)
    expect(stderr).toContain('"picBed.uploader" is "some-plugin", which was skipped: there is no provider')
    expect(stderr).not.toContain('hunter2')
  })

  it.each([
    [
      '192.0.2.1',
      /http:\/\/192\.0\.2\.1:0: this machine does not have this IP address\..* \(EADDRNOTAVAIL\)/,
    ],
    ['/no/such/folder/socket', /unix:\/no\/such\/folder\/socket: its folder is missing .*--host/],
  ])('and says why nothing can listen on %s', async (host, sentence) => {
    const cwd = await makeDirectory()
    const { code, stderr } = await runCli(['--port', '0', '--host', host], { cwd })
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringMatching(sentence) })
  })
})

describe('the server', () => {
  it.each([[['--port', '0']], [['serve', '-p', '0']]])(
    'started with %j says first where it listens, then what an operator should know',
    async args => {
      const cwd = await makeDirectory()
      const server = await start(args, cwd)
      expect(server.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/)
      expect(server.log()[0]).toMatchObject({ level: 'info', msg: `Listening on ${server.url}` })
      expect(await (await fetch(`${server.url}/heartbeat`)).json()).toEqual({
        success: true,
        result: 'alive',
      })
      const answer = await post(`${server.url}/upload`, { body: formOf({ 'a.txt': 'hello' }) })
      expect(answer.result[0]).toMatch(`${server.url}/files/Default/`)
      expect(await server.stop()).toBe(0)
      expect(server.log().map(line => line['msg'])).toContain(
        `No destination is configured. Files are stored in ${join(cwd, 'upload-server/files')} and served under /files/.`,
      )
    },
  )

  it('takes flags before the environment and the environment before the file', async () => {
    const cwd = await withConfig({ log: { level: 'fatal' }, server: { host: '192.0.2.1', port: 1 } })
    const env = { UPLOAD_SERVER_LOG_LEVEL: 'info', UPLOAD_SERVER_HOST: '192.0.2.2' }
    const { url } = await start(['-p', '0', '--host', '::1'], cwd, env)
    expect(url).toMatch(/^http:\/\/\[::1\]:\d+$/)
  })

  it('warns of a short key if other machines can reach it', async () => {
    const server = await start(['-p', '0', '--host', '0.0.0.0', '--key', 'a1b2c'])
    expect(await server.stop()).toBe(0)
    const warnings = server.log().filter(({ level }) => level === 'warn')
    expect(warnings.map(({ msg }) => msg)).toEqual([expect.stringMatching(/^server.key is too short/)])
  })

  it('goes on when the reader of its log goes away', async () => {
    const server = await start(['-p', '0'])
    server.process.stdout?.destroy()
    for (let i = 0; i < 3; i++) {
      const answer = await post(`${server.url}/upload`, { body: formOf({ 'a.txt': `hello ${i}` }) })
      expect(answer.status).toBe(200)
    }
    expect(await server.stop()).toBe(0)
  })

  it('says where it listens before a destination warns of itself', async () => {
    const careless = { url: 'https://127.0.0.1:1', insecureTls: true, urlPrefix: 'https://img.example.com' }
    const server = await start(['-p', '0'], await withConfig({ providers: { webdav: { careless } } }))
    expect(await server.stop()).toBe(0)
    const messages = server.log().map(line => String(line['msg']))
    expect(messages[0]).toMatch(/^Listening on /)
    expect(messages[1]).toMatch(/careless.*insecureTls/)
  })
})
