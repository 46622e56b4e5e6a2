/**
 * The least an S3 server can do, in memory: `node s3-server.mjs [LATENCY_MS]`. It throws bodies away, counts them, and checks neither
 * signatures nor hashes, so that what is measured is who sends to it. Also a floor's plain `PUT`. Its address is the
 * first line.
 */
import { createServer } from 'node:http'

/** Bytes by path; of an upload in parts by its id, too. @type {Map<string, number>} */
const sizes = new Map()
let count = 0

function receive(req, res, store) {
  let size = 0
  req.on('data', chunk => {
    size += chunk.length
  })
  req.on('end', () => {
    const answer = () =>
      res.setHeader('ETag', `"${++count}"`).setHeader('x-amz-request-id', count).end(store(size))
    if (latencyMs > 0) setTimeout(answer, latencyMs)
    else answer()
  })
}

async function removeListed(req, res) {
  let text = ''
  for await (const chunk of req) text += chunk
  const deleted = [...text.matchAll(/<Key>(.*?)<\/Key>/g)].map(([key]) => `<Deleted>${key}</Deleted>`)
  const answer = () => res.end(`<DeleteResult>${deleted.join('')}</DeleteResult>`)
  setTimeout(answer, latencyMs)
}

const latencyMs = Number(process.argv[2] ?? 0)

const server = createServer((req, res) => {
  const [path, query = ''] = req.url.split('?')
  const id = new URLSearchParams(query).get('uploadId')
  if (req.method === 'PUT') {
    receive(req, res, size => void sizes.set(id ?? path, id ? (sizes.get(id) ?? 0) + size : size))
  } else if (req.method === 'POST' && id) {
    receive(req, res, () => {
      sizes.set(path, sizes.get(id) ?? 0)
      sizes.delete(id)
      return '<CompleteMultipartUploadResult><ETag>"1"</ETag></CompleteMultipartUploadResult>'
    })
  } else if (req.method === 'POST' && query.startsWith('delete')) {
    removeListed(req, res)
  } else if (req.method === 'DELETE') {
    receive(req, res, () => void sizes.delete(path))
  } else if (req.method === 'POST') {
    receive(req, res, () => {
      const result = `<UploadId>upload-${++count}</UploadId>`
      return `<InitiateMultipartUploadResult>${result}</InitiateMultipartUploadResult>`
    })
  } else if (req.method === 'HEAD' && sizes.has(path)) {
    res.setHeader('Content-Length', sizes.get(path)).end()
  } else {
    res.writeHead(404).end()
  }
})
server.keepAliveTimeout = 0
server.listen(0, '127.0.0.1', () => {
  console.log(JSON.stringify({ url: `http://127.0.0.1:${server.address().port}` }))
})
