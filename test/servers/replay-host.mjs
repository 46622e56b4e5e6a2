// Plays documented exchanges for replay.ts, which starts it as a process of its own. A request that is not exactly as
// documented gets 400 and what differs; values are not repeated, since some are secrets.
import { randomBytes } from 'node:crypto'
import { createServer } from 'node:http'

/** Headers that are about the connection or the body, and the client's name. */
const UNDOCUMENTED = [
  ...['host', 'connection', 'user-agent', 'accept', 'accept-encoding'],
  ...['content-type', 'content-length'],
]
const exchanges = new Map()
const files = new Map()

class Difference extends Error {}

function check(isRight, difference) {
  if (!isRight) throw new Difference(difference)
}

/** Both have the same names with the same values, or with values like an expression. */
function compare(kind, sent, wanted) {
  for (const [name, value] of Object.entries(wanted)) {
    check(sent.has(name), `the ${kind} "${name}" is missing`)
    const isRight = value.like ? new RegExp(value.like).test(sent.get(name)) : sent.get(name) === value
    check(isRight, `the ${kind} "${name}" has another value`)
  }
  for (const name of sent.keys())
    check(Object.hasOwn(wanted, name), `the ${kind} "${name}" is not documented`)
}

/** Pairs as a map; a name that comes twice is a difference. */
function toMap(kind, pairs) {
  const map = new Map(pairs)
  check(map.size === pairs.length, `a ${kind} comes twice`)
  return map
}

/** Reads a form by RFC 7578 to the letter: fields, and the one file. */
function readForm(type, body) {
  const boundary = /^multipart\/form-data; boundary=([\w'()+,./:=?-]{1,70})$/.exec(type ?? '')?.[1]
  check(boundary !== undefined, 'the body is no form')
  const end = Buffer.from(`\r\n--${boundary}`)
  check(
    body.subarray(0, end.length).equals(Buffer.from(`--${boundary}\r\n`)),
    'the form has a wrong beginning',
  )
  const fields = []
  const found = []
  let at = end.length
  for (;;) {
    const headEnd = body.indexOf('\r\n\r\n', at)
    const next = body.indexOf(end, headEnd + 4)
    check(headEnd >= 0 && next >= 0, 'the form breaks off')
    const head = body.toString('utf8', at, headEnd)
    const content = body.subarray(headEnd + 4, next)
    const [, name, fileName, fileType] =
      /^Content-Disposition: form-data; name="([^"\r\n]+)"(?:; filename="([^"\r\n]+)"\r\nContent-Type: ([\w.+-]+\/[\w.+-]+))?$/.exec(
        head,
      ) ?? []
    check(name !== undefined, `a part of the form begins with ${JSON.stringify(head)}`)
    if (fileType === undefined) fields.push([name, content.toString()])
    else found.push({ name, fileName, content })
    at = next + end.length + 2
    const mark = body.toString('latin1', at - 2, at)
    if (mark === '--') break
    check(mark === '\r\n', 'a part of the form has a wrong end')
  }
  check(body.toString('latin1', at) === '\r\n', 'something follows the form')
  check(found.length === 1, `the form has ${found.length} files`)
  return { fields: toMap('field', fields), file: found[0] }
}

function play({ request: wanted }, request, url, body) {
  check(request.method === wanted.method, `the method is ${request.method}`)
  check(url.path === wanted.path, `the path is ${url.path}`)
  compare('parameter', toMap('parameter', [...url.searchParams]), wanted.query ?? {})
  const headers = Object.entries(wanted.headers ?? {}).map(([name, value]) => [name.toLowerCase(), value])
  const documented = Object.fromEntries(headers)
  const sent = Object.entries(request.headers).filter(
    ([name]) => Object.hasOwn(documented, name) || !UNDOCUMENTED.includes(name),
  )
  compare('header', new Map(sent), documented)
  check(request.headers['content-length'] === String(body.length), 'the length of the body was not said')
  const { fields, file } = readForm(request.headers['content-type'], body)
  compare('field', fields, wanted.fields ?? {})
  check(file.name === wanted.file, `the file is in the field "${file.name}"`)
  return file.content
}

function answer(response, status, body) {
  const isText = typeof body === 'string'
  response.writeHead(status, { 'Content-Type': isText ? 'text/plain' : 'application/json' })
  response.end(isText ? body : JSON.stringify(body))
}

function respond(request, response, body) {
  const base = `http://${request.headers.host}`
  const url = new URL(request.url, base)
  const file = files.get(url.pathname)
  if (request.method === 'GET' && file) {
    response.writeHead(200, { 'Content-Length': file.length })
    response.end(file)
    return
  }
  const [, name, path] = /^\/replay\/(\w+)(\/.*)$/.exec(url.pathname) ?? []
  const exchange = exchanges.get(name)
  if (!exchange) return answer(response, 404, 'no such page')
  try {
    const bytes = play(exchange, request, { path, searchParams: url.searchParams }, body)
    const { success } = exchange
    const id = randomBytes(8).toString('hex')
    const kept = (success.file ?? '/files/{{id}}').replace('{{id}}', id)
    files.set(kept, bytes)
    const text = JSON.stringify(success.body)
      .replaceAll('{{url}}', base + kept)
      .replaceAll('{{id}}', id)
      .replaceAll('{{base}}', base)
    answer(response, success.status, JSON.parse(text))
  } catch (error) {
    if (!(error instanceof Difference)) throw error
    answer(response, 400, `Not as documented: ${error.message}.`)
  }
}

const server = createServer(async (request, response) => {
  const chunks = []
  try {
    for await (const chunk of request) chunks.push(chunk)
  } catch {
    return // who broke off gets no answer
  }
  respond(request, response, Buffer.concat(chunks))
})
server.listen(0, '127.0.0.1', () => process.send({ port: server.address().port }))

process.on('message', ({ name, exchange }) => {
  exchanges.set(name, exchange)
  process.send({ name })
})
process.on('disconnect', () => process.exit())
