/**
 * What the machine can do at best, to hold the server's numbers against: `node floor-server.mjs PORT KIND DIRECTORY [URL]`.
 *
 * - `raw`: bare node:http, the body goes into a file as it comes, nothing is parsed
 * - `hashed`: the same, and its SHA-256 is taken
 * - `busboy`: bare node:http and busboy, the part goes into a file
 * - `put`: bare node:http and busboy, the part goes on to the URL in a plain PUT
 * - `express`: Express and multer with its disk storage
 * - `recorded`: the same, and what has to be known of an upload: its SHA-256, its job and its history in SQLite, a line of
 *   the log
 *
 * All answer `GET /heartbeat`, hand stored files out under `/files/`, and print their address as the first line.
 */
import { createHash, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createReadStream, createWriteStream } from 'node:fs'
import { copyFile } from 'node:fs/promises'
import { Agent, createServer, request } from 'node:http'
import { createRequire } from 'node:module'
import { basename, join } from 'node:path'

const [port, kind, directory, target] = process.argv.slice(2)
const ALIVE = '{"success":true,"result":"alive"}'
let count = 0
let url = ''

const newName = () => `${++count}.bin`
const answerOf = names => ({ success: true, result: names.map(name => `${url}/files/${name}`) })

function answer(res, body) {
  res.setHeader('Content-Type', 'application/json')
  res.end(body)
}

function serveFile(req, res) {
  createReadStream(join(directory, basename(req.url))).pipe(res)
}

/** The least that a list of paths takes: every file is copied. */
async function copyList(req, res) {
  let text = ''
  for await (const chunk of req) text += chunk
  const names = await Promise.all(
    JSON.parse(text).list.map(async path => {
      const name = newName()
      await copyFile(path, join(directory, name))
      return name
    }),
  )
  answer(res, JSON.stringify(answerOf(names)))
}

function bare(receive) {
  return createServer((req, res) => {
    if (req.url === '/heartbeat') answer(res, ALIVE)
    else if (req.method === 'GET') serveFile(req, res)
    else if (req.headers['content-type'] === 'application/json') copyList(req, res)
    else receive(req, res)
  })
}

function raw() {
  return bare((req, res) => {
    const name = newName()
    const file = createWriteStream(join(directory, name))
    req.pipe(file)
    file.on('close', () => answer(res, JSON.stringify(answerOf([name]))))
  })
}

function hashed() {
  return bare((req, res) => {
    const name = newName()
    const file = createWriteStream(join(directory, name))
    const hash = createHash('sha256')
    req.on('data', chunk => hash.update(chunk)).pipe(file)
    file.on('close', () => answer(res, JSON.stringify({ ...answerOf([name]), sha256: hash.digest('hex') })))
  })
}

function withBusboy() {
  const busboy = createRequire(import.meta.resolve('multer'))('busboy')
  return bare((req, res) => {
    const parts = busboy({ headers: req.headers })
    const files = []
    parts.on('file', (_field, stream) => {
      const name = newName()
      const file = createWriteStream(join(directory, name))
      stream.pipe(file)
      files.push(once(file, 'close').then(() => name))
    })
    parts.on('close', async () => answer(res, JSON.stringify(answerOf(await Promise.all(files)))))
    req.pipe(parts)
  })
}

function withPut() {
  const busboy = createRequire(import.meta.resolve('multer'))('busboy')
  const agent = new Agent({ keepAlive: true })
  return bare((req, res) => {
    const parts = busboy({ headers: req.headers })
    parts.on('file', (_field, stream) => {
      const link = `${target}/${newName()}`
      const put = request(link, { method: 'PUT', agent }, stored => {
        stored.resume().on('end', () => answer(res, JSON.stringify({ success: true, result: [link] })))
      })
      stream.pipe(put)
    })
    req.pipe(parts)
  })
}

async function withExpress() {
  const [{ default: express }, { default: multer }] = await Promise.all([import('express'), import('multer')])
  const filename = (_req, _file, done) => done(null, newName())
  const storage = multer.diskStorage({ destination: directory, filename })
  const app = express()
  app.get('/heartbeat', (_req, res) => res.json({ success: true, result: 'alive' }))
  app.get('/files/:name', serveFile)
  app.post('/upload', multer({ storage }).any(), (req, res) => {
    res.json(answerOf(req.files.map(file => file.filename)))
  })
  return createServer(app)
}

async function withRecords() {
  const [{ default: express }, { default: multer }, { loadSqlite }, { pino }] = await Promise.all([
    import('express'),
    import('multer'),
    import('../build/store/sqlite-library.js'),
    import('pino'),
  ])
  const { DatabaseSync } = loadSqlite()
  const records = new DatabaseSync(join(directory, '../records.db'))
  records.exec('pragma journal_mode = WAL; pragma synchronous = NORMAL')
  records.exec(`
    create table jobs (id text primary key, state text, created_at integer) without rowid;
    create table history (job_id text, name text, size integer, sha256 text, time integer)`)
  const begin = records.prepare(`insert into jobs values (?, 'uploading', ?)`)
  const note = records.prepare('insert into history values (?, ?, ?, ?, ?)')
  const end = records.prepare(`update jobs set state = 'finished' where id = ?`)
  const deliver = (id, files) => {
    records.exec('begin')
    for (const { filename, size, sha256 } of files) note.run(id, filename, size, sha256, Date.now())
    end.run(id)
    records.exec('commit')
  }
  const storage = {
    _handleFile(_req, { stream }, done) {
      const filename = newName()
      const hash = createHash('sha256')
      const file = createWriteStream(join(directory, filename))
      stream.on('data', chunk => hash.update(chunk)).pipe(file)
      file.on('error', done)
      file.on('finish', () => done(null, { filename, size: file.bytesWritten, sha256: hash.digest('hex') }))
    },
  }
  const logger = pino()
  const app = express()
  app.get('/heartbeat', (_req, res) => res.json({ success: true, result: 'alive' }))
  app.get('/files/:name', serveFile)
  app.post(
    '/upload',
    (req, _res, next) => {
      req.id = randomUUID()
      begin.run(req.id, Date.now())
      next()
    },
    multer({ storage }).any(),
    ({ id, files, ip }, res) => {
      deliver(id, files)
      res.json(answerOf(files.map(file => file.filename)))
      logger.info({ id, ip, keys: files.map(file => file.filename), status: res.statusCode }, 'upload')
    },
  )
  return createServer(app)
}

const kinds = { raw, hashed, busboy: withBusboy, put: withPut, express: withExpress, recorded: withRecords }
const server = await kinds[kind]()
server.listen(Number(port), '127.0.0.1', () => {
  url = `http://127.0.0.1:${server.address().port}`
  console.log(JSON.stringify({ url }))
})
