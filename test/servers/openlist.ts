import { createHash, randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { listen } from '../helpers/listen.ts'

export interface OpenList {
  readonly port: number
  readonly url: string
  readonly username: string
  readonly password: string
  /** Of the settings. */
  readonly token: string
  /** Ends all logins. */
  forgetLogins(): void
  close(): Promise<void>
}

/**
 * Does what the source of OpenList says of its API (github.com/OpenListTeam/OpenList: server/handles/fsup.go, fsread.go,
 * fsmanage.go, auth.go), on 127.0.0.1. The user's folder is /home, and every link needs its signature.
 */
export async function startOpenList(): Promise<OpenList> {
  const [username, password, token] = ['uploader', 'password ü', 'openlist-0123456789']
  const files = new Map<string, Buffer>()
  const logins = new Set<string>()
  const signOf = (path: string) => `${createHash('sha256').update(`key ${path}`).digest('base64url')}=:0`

  const server = createServer((request, response) => {
    handle(request, response).catch(() => response.destroy())
  })

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://localhost')
    const say = (code: number, message: string, data: unknown = null) =>
      void response.setHeader('Content-Type', 'application/json').end(JSON.stringify({ code, message, data }))
    if (pathname.startsWith('/d/')) {
      const path = pathname.slice(2).split('/').map(decodeURIComponent).join('/')
      const bytes = searchParams.get('sign') === signOf(path) ? files.get(path) : undefined
      return void response.writeHead(bytes ? 200 : 401).end(bytes)
    }
    if (pathname === '/api/auth/login') {
      const sent = JSON.parse((await buffer(request)).toString())
      if (sent.username !== username || sent.password !== password)
        return say(400, 'username or password is incorrect')
      const login = randomUUID()
      logins.add(login)
      return say(200, 'success', { token: login })
    }
    const { authorization = '' } = request.headers
    if (authorization !== token && !logins.has(authorization)) {
      request.resume()
      return say(401, 'token is invalidated')
    }
    if (pathname === '/api/me')
      return say(200, 'success', { id: 2, username, base_path: '/home', role: 0, disabled: false })
    if (pathname === '/api/fs/put' && request.method === 'PUT') {
      const path = `/home${decodeURIComponent(String(request.headers['file-path']))}`
      const bytes = await buffer(request)
      if (bytes.length !== Number(request.headers['content-length'])) return say(500, 'unexpected EOF')
      files.set(path, bytes)
      return say(200, 'success')
    }
    const sent = JSON.parse((await buffer(request)).toString())
    if (pathname === '/api/fs/get') {
      const path = `/home${sent.path}`
      const bytes = files.get(path)
      if (!bytes) return say(500, `failed get obj: ${path}: object not found`)
      const { length: size } = bytes
      return say(200, 'success', { name: path.split('/').at(-1), size, is_dir: false, sign: signOf(path) })
    }
    if (pathname === '/api/fs/remove') {
      for (const name of sent.names) files.delete(`/home${sent.dir}/${name}`)
      return say(200, 'success')
    }
    say(404, 'not found')
  }

  return {
    ...(await listen(server)),
    username,
    password,
    token,
    forgetLogins: () => logins.clear(),
  }
}
