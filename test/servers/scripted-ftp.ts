import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { listen } from '../helpers/listen.ts'

/**
 * Starts a server that speaks enough FTP for one upload after the other, and says what it is told to.
 *
 * @param script answers by the first word of a command, instead of the usual ones; a function gets the rest of the line
 * @param resets how many data connections are reset: before the first byte and without a word about it, unless there is a `reason`
 */
export async function startScriptedFtp(
  script: Record<string, string | ((rest: string) => string | undefined)> = {},
  { resets = 0, reason = '' } = {},
) {
  /** Every command so far. */
  const commands: string[] = []
  /** What is stored, by path. */
  const files = new Map<string, Buffer>()

  const serve = (control: Socket) => {
    let data: Promise<Buffer> | undefined
    let dataSocket: Promise<Socket> | undefined
    let isReset = false
    let renamed = ''
    const openData = async () => {
      isReset = resets-- > 0
      const { port, received, socket } = await takeData(isReset)
      data = received
      dataSocket = socket
      return port
    }
    /** The client, which runs in this process, has heard of the reset. */
    const untilReset = async () => {
      const socket = await dataSocket
      if (socket && !socket.destroyed) await once(socket, 'close')
      for (let turn = 0; turn < 20; turn++) await nextTurn()
    }
    const usual: Record<string, (rest: string) => string | Promise<string>> = {
      USER: () => '331 Password please',
      PASS: () => '230 Welcome',
      PWD: () => '257 "/" is where you are',
      EPSV: async () => `229 Extended passive mode (|||${await openData()}|)`,
      // Of another machine, to which no client should connect (FTP bounce).
      PASV: async () => {
        const port = await openData()
        return `227 Entering passive mode (192,0,2,1,${port >> 8},${port & 255})`
      },
      STOR: async path => {
        if (isReset && !reason) await untilReset()
        control.write('150 Go on\r\n')
        if (isReset && reason) {
          await untilReset()
          return reason
        }
        files.set(path, (await data) ?? Buffer.alloc(0))
        return '226 Done'
      },
      LIST: async path => {
        control.write('150 Here it is\r\n')
        const folder = `${path.replace(/^-a /, '').replace(/\/$/, '')}/`
        const below = [...files.keys()].filter(name => name.startsWith(folder))
        const lines = below.map(path => {
          const [name, inFolder] = path.slice(folder.length).split('/')
          return `${inFolder === undefined ? '-' : 'd'}rw-r--r-- 1 u g 5 Nov 22 2026 ${name}\r\n`
        })
        ;(await dataSocket)?.end(lines.join(''))
        return '226 Done'
      },
      SIZE: path => (files.has(path) ? `213 ${files.get(path)?.length}` : '550 Not there'),
      DELE: path => (files.delete(path) ? '250 Gone' : '550 Not there'),
      RNFR: path => {
        renamed = path
        return files.has(path) ? '350 To what?' : '550 Not there'
      },
      RNTO: path => {
        files.set(path, files.get(renamed) ?? Buffer.alloc(0))
        files.delete(renamed)
        return '250 Renamed'
      },
    }
    const answer = async (line: string) => {
      commands.push(line)
      const [, word = '', rest = ''] = /^(\S+) ?(.*)$/.exec(line) ?? []
      const scripted = script[word]
      const said = typeof scripted === 'function' ? scripted(rest) : scripted
      control.write(`${said ?? (await usual[word]?.(rest)) ?? '200 Fine'}\r\n`)
    }
    control.setEncoding('utf8').on('data', (text: string) => {
      for (const line of text.split('\r\n').filter(Boolean)) void answer(line)
    })
    control.write(`${script['greeting'] ?? '220 Hello'}\r\n`)
  }

  return { ...(await listen(createServer(serve))), commands, files }
}

/** Waits on a port of its own for one connection, and for everything that comes over it; for ever when that is reset. */
async function takeData(
  isReset: boolean,
): Promise<{ port: number; received: Promise<Buffer>; socket: Promise<Socket> }> {
  const server = createServer()
  const { port } = await listen(server)
  const socket = once(server, 'connection').then(([socket]) => socket as Socket)
  const received = socket.then(async socket => {
    server.close()
    if (isReset) {
      setTimeout(() => socket.resetAndDestroy(), 10) // earlier it is another way that is tried
      return await new Promise<Buffer>(() => {})
    }
    const chunks: Buffer[] = []
    for await (const chunk of socket) chunks.push(chunk)
    return Buffer.concat(chunks)
  })
  received.catch(() => {})
  return { port, received, socket }
}
