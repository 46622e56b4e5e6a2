import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { request } from 'node:http'
import { json } from 'node:stream/consumers'
import { describe, expect, it, onTestFinished } from 'vitest'
import { makeDirectory } from '../../helpers/directory.ts'
import { eventually } from '../../helpers/eventually.ts'
import { upload } from '../../helpers/form.ts'
import { findFreePorts } from '../../helpers/free-port.ts'
import { needs, needsLinux, needsRoot } from '../../helpers/needs.ts'
import { isRunning, listProcesses } from '../../helpers/processes.ts'
import { BIN, environmentIn, spawnServer } from '../../helpers/spawn-server.ts'

/** Settles with the first answer, which comes before the rest of the server is loaded. */
const firstHeartbeat = (url: string) =>
  eventually(async () => expect((await fetch(`${url}/heartbeat`)).status).toBe(200))

describe('a signal right after the first heartbeat', () => {
  it.for(['SIGTERM', 'SIGINT'] as const)(
    '%s lets the uploads finish that are under way, and /ready is 503 from then on, also if it waited for the start',
    async signal => {
      const port = await findFreePorts()
      const server = await spawnServer(['--port', String(port)])
      const url = `http://127.0.0.1:${port}`
      await firstHeartbeat(url)
      const send = async (method: string, path: string, body?: string) => {
        const asking = request(url + path, { method, agent: false })
        const answered = once(asking, 'response')
        await new Promise<void>(sent => asking.end(body, sent))
        return { answered }
      }
      const sent = [await send('PUT', '/upload/a.txt', 'hello'), await send('GET', '/ready')]
      server.process.kill(signal)
      const answers = await Promise.all(sent.map(async ({ answered }) => (await answered)[0]))
      const [uploaded, ready] = await Promise.all(answers.map(json))
      expect(uploaded).toMatchObject({ success: true, result: [expect.any(String)] })
      expect([answers[1].statusCode, ready]).toMatchObject([503, { code: 'shutting_down' }])
      expect(await server.exit).toBe(0)
      expect(server.lines.at(-1)).toMatch(/"Stopped"/)
    },
  )

  it('ends the first process of a container', async context => {
    needsLinux(context, 'process namespaces')
    needsRoot(context, 'process namespaces')
    needs(context, 'unshare', 'util-linux')
    const port = await findFreePorts()
    const directory = await makeDirectory()
    const args = ['--pid', '--fork', '--kill-child', process.execPath, BIN, '--port', String(port)]
    const outer = spawn('unshare', args, { cwd: directory, env: environmentIn(directory), stdio: 'ignore' })
    onTestFinished(() => void outer.kill('SIGKILL'))
    const exit = once(outer, 'exit')
    await firstHeartbeat(`http://127.0.0.1:${port}`)
    const { pid = 0 } = listProcesses().find(({ parent }) => parent === outer.pid) ?? {}
    expect(isRunning(pid)).toBe(true)
    process.kill(pid, 'SIGTERM')
    expect(await exit).toEqual([0, null])
  })
})

describe('a start that fails leaves nothing that says it is alive', () => {
  it.for(['pino', 'express', 'ipaddr.js'])('without the package %s', async name => {
    const hook = new URL(`../../fixtures/without.mjs?${name}`, import.meta.url)
    const server = await spawnServer(['--port', '0'], { env: { NODE_OPTIONS: `--import=${hook}` } })
    expect(await server.exit).toBe(1)
    expect(server.errors()).toMatch(
      new RegExp(
        `^Cannot find package '${name}' imported from .*\\. Run "npm install" in "/.*", or reinstall upload-server\\.$`,
        'm',
      ),
    )
    expect(server.lines).toEqual([])
  })

  it('with 48 open files', async context => {
    needs(context, 'prlimit', 'util-linux')
    const directory = await makeDirectory()
    const args = ['--nofile=48:48', process.execPath, BIN, '--port', '0']
    const child = spawn('prlimit', args, { cwd: directory, env: environmentIn(directory) })
    onTestFinished(() => void child.kill('SIGKILL'))
    let said = ''
    child.stderr.on('data', chunk => {
      said += chunk
    })
    const started = once(child.stdout, 'data').then(([line]) =>
      String(JSON.parse(String(line).split('\n')[0] ?? '').url),
    )
    const ended = once(child, 'close')
    const url = await Promise.race([started, ended.then(() => undefined)])
    if (url !== undefined) {
      // Later versions of Node load the same with fewer files: then uploads work.
      expect(await upload(`${url}/upload`, { 'a.txt': 'x' })).toMatchObject({ status: 200 })
      return
    }
    expect(await ended).toEqual([1, null])
    expect(said).toMatch(/^EMFILE: too many open files, .*\. Raise the limit of open files \(ulimit -n/)
  })
})
