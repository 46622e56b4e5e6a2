import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, type TestContext } from 'vitest'
import { startDaemon } from '../servers/daemon.ts'
import type { Tab } from './browser.ts'
import { findFreePorts } from './free-port.ts'
import { needs } from './needs.ts'

const PREFERENCES = {
  'remote.prefs.recommended': false, // some of them loosen what is tested here
  'network.dns.forceResolve': '127.0.0.1', // pages of other origins can be had without a network
  'network.http.phishy-userpass-length': 255, // no question about a password in the address
  'network.proxy.type': 0,
  'network.captive-portal-service.enabled': false,
  'network.connectivity-service.enabled': false,
  'app.normandy.enabled': false,
  'app.update.enabled': false,
  'browser.send_pings': true, // off unless somebody asks for them
  'browser.shell.checkDefaultBrowser': false,
  'datareporting.policy.dataSubmissionEnabled': false,
  'devtools.jsonview.enabled': false, // shows answers in a page that takes no scripts
  'services.settings.server': 'data:,nothing',
}

type Firefox = Awaited<ReturnType<typeof launch>>

let firefox: Promise<Firefox> | undefined

afterAll(async () => (await firefox)?.close())

/** Runs with tabs of headless Firefox, which is started once for each file of tests. */
export async function inFirefox(
  context: TestContext,
  work: (open: () => Promise<Tab>) => Promise<void>,
): Promise<void> {
  needs(context, 'firefox-esr', 'firefox-esr')
  firefox ??= launch()
  const { send } = await firefox
  await work(async () => {
    const [first] = Object.values(await send('WebDriver:GetWindowHandles', {}))
    await send('WebDriver:SwitchToWindow', { handle: first }) // the tab before may be closed
    const { handle } = await send('WebDriver:NewWindow', { type: 'tab' })
    const inTab = async (command: string, parameters: object) => {
      await send('WebDriver:SwitchToWindow', { handle })
      return send(command, parameters)
    }
    return {
      goto: url => inTab('WebDriver:Navigate', { url }),
      async evaluate(script) {
        const { value } = await inTab('WebDriver:ExecuteAsyncScript', { script: report(script) })
        const { error, result } = value as { error?: string; result?: unknown }
        if (error !== undefined) throw new Error(error)
        return result
      },
      close: () => inTab('WebDriver:CloseWindow', {}),
    }
  })
}

/**
 * Runs a script as one of the page, and hands what its promise becomes to the callback that is the last argument. On a page
 * whose policy forbids that, it runs beside the page.
 *
 * @param script an expression
 */
function report(script: string): string {
  return `const done = arguments[arguments.length - 1];
    (async () => {
      try {
        return await window.eval(${JSON.stringify(script)})
      } catch (error) {
        if (error.name !== 'EvalError') throw error
        return await (${script})
      }
    })().then(result => done({ result }), error => done({ error: String(error) }))`
}

/** Driven by Marionette (firefox-source-docs.mozilla.org/testing/marionette): playwright-core wants a Firefox of its own. */
async function launch() {
  const profile = await mkdtemp(join(tmpdir(), 'upload-server-firefox-'))
  const port = await findFreePorts()
  const preferences = Object.entries({ ...PREFERENCES, 'marionette.port': port })
  const lines = preferences.map(([name, value]) => `user_pref("${name}", ${JSON.stringify(value)});`)
  await writeFile(join(profile, 'user.js'), lines.join('\n'))
  const args = ['--headless', '--marionette', '--profile', profile]
  const daemon = await startDaemon('firefox-esr', args, { port })
  const socket = connect(port, '127.0.0.1')
  const messages = readMessages(socket)
  await messages.next() // its greeting
  let id = 0

  /** A message is `[0, id, command, parameters]`, its answer `[1, id, error, result]`, each after its length and a colon. */
  async function send(command: string, parameters: object): Promise<Record<string, unknown>> {
    const text = JSON.stringify([0, ++id, command, parameters])
    socket.write(`${Buffer.byteLength(text)}:${text}`)
    const { value: message } = await messages.next()
    if (!message) throw new Error(`Firefox hung up at ${command}`)
    const [, , error, result] = message as [1, number, object | null, Record<string, unknown>]
    if (error) throw new Error(`${command}: ${JSON.stringify(error)}`)
    return result
  }
  await send('WebDriver:NewSession', {
    acceptInsecureCerts: true,
    timeouts: { script: 60_000, pageLoad: 60_000 },
  })
  return {
    send,
    async close() {
      const closed = once(socket, 'close')
      socket.destroy()
      await closed
      await daemon.stop()
      await rm(profile, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}

async function* readMessages(socket: Socket): AsyncGenerator<unknown> {
  let received = Buffer.alloc(0)
  for await (const chunk of socket) {
    received = Buffer.concat([received, chunk])
    for (let colon = received.indexOf(':'); colon > 0; colon = received.indexOf(':')) {
      const end = colon + 1 + Number(received.toString('latin1', 0, colon))
      if (received.length < end) break
      yield JSON.parse(received.toString('utf8', colon + 1, end))
      received = received.subarray(end)
    }
  }
}
