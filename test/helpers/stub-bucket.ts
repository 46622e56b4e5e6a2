import { createServer } from 'node:http'
import { onTestFinished } from 'vitest'
import { listen } from './listen.ts'

/** As much of S3 as a put, a look and a removal need, whose puts wait and fail as a test wants it. */
export interface StubBucket {
  /** Options of an `s3` destination. */
  readonly options: Record<string, unknown>
  /** What is stored, by key. */
  readonly objects: ReadonlyMap<string, Buffer>
  /** Keys of the puts that have arrived whole, in order. */
  readonly puts: readonly string[]
  /** Keys that were looked for. */
  readonly looks: readonly string[]
  /** Has puts wait for their answer; what they brought is stored. */
  hold(): void
  letGo(): void
  /** Stores what that many of the next puts bring, and answers with 500. */
  forget(count: number): void
  /** Refuses that many of the next puts. @param status default: one that does not pass */
  refuse(count: number, status?: number): void
}

export async function startStubBucket(): Promise<StubBucket> {
  const objects = new Map<string, Buffer>()
  const puts: string[] = []
  const looks: string[] = []
  const held: (() => void)[] = []
  let isHeld = false
  let refusals = 0
  let forgotten = 0
  let refusal = 403

  const server = createServer(async (req, res) => {
    const key = decodeURIComponent(String(req.url).split('?')[0]!.slice('/bucket/'.length))
    if (req.method === 'DELETE') {
      objects.delete(key)
      res.writeHead(204).end()
      return
    }
    if (req.method === 'POST') {
      // A check begins an upload in parts, and aborts it.
      const begun = '<InitiateMultipartUploadResult><UploadId>u</UploadId></InitiateMultipartUploadResult>'
      res.setHeader('x-amz-request-id', 'r').end(begun)
      return
    }
    if (req.method !== 'PUT') {
      if (req.method === 'HEAD') looks.push(key)
      const object = objects.get(key)
      const headers = { 'x-amz-request-id': 'r', ...(object && { ETag: '"etag"' }) }
      res.writeHead(object ? 200 : 404, headers).end(object)
      return
    }
    const chunks: Buffer[] = []
    try {
      for await (const chunk of req) chunks.push(chunk)
    } catch {
      return // the client went away
    }
    puts.push(key)
    if (refusals > 0) {
      refusals--
      res.writeHead(refusal).end()
    } else {
      objects.set(key, Buffer.concat(chunks))
      const answer = () => res.setHeader('ETag', '"etag"').end()
      if (forgotten > 0) {
        forgotten--
        res.writeHead(500).end()
      } else if (isHeld) held.push(answer)
      else answer()
    }
  })
  const { url: origin, close } = await listen(server)
  onTestFinished(close)
  return {
    options: {
      ...{ bucket: 'bucket', endpoint: origin, region: 'here', addressingStyle: 'path' },
      ...{ accessKeyId: 'id', secretAccessKey: 's3cr3t-0f-the-stub', urlPrefix: `${origin}/bucket` },
    },
    objects,
    puts,
    looks,
    hold() {
      isHeld = true
    },
    letGo() {
      isHeld = false
      for (const go of held.splice(0)) go()
    },
    forget(count) {
      forgotten = count
    },
    refuse(count, status = 403) {
      refusals = count
      refusal = status
    },
  }
}
