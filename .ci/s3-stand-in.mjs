/**
 * Stands in for the S3 store of docs/examples/replicas, whose image CI can't get. It keeps objects in memory, lets anyone read
 * them, and doesn't verify signatures: the tests of the provider use real stores.
 */
import { createServer } from 'node:http'

const objects = new Map()

createServer(async (req, res) => {
  const path = req.url.split('?')[0]
  const chunks = []
  for await (const chunk of req) chunks.push(chunk)
  if (req.method === 'PUT') {
    objects.set(path, Buffer.concat(chunks))
    res.setHeader('ETag', '"stored"').setHeader('x-amz-request-id', 'stand-in').end()
    return
  }
  const object = objects.get(path)
  if (!object) res.statusCode = 404
  res.end(object)
}).listen(9000)
