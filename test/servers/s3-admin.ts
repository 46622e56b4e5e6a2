import { createHash } from 'node:crypto'
import { AwsClient } from 'aws4fetch'

/** What the tests have to do at a store beside what they test, by a signer of its own. */
export interface S3Admin {
  /** A signed request, such as `send('PUT', '/bucket')`. Fails unless the status is below 300. */
  send(method: string, path: string, body?: string): Promise<Response>
  /** The body of an object. */
  read(bucket: string, key: string): Promise<Buffer>
  /** Headers of an object, by lower-case name. */
  head(bucket: string, key: string): Promise<Record<string, string>>
  /** Keys of the uploads in parts that nobody has finished or taken back. */
  listUploads(bucket: string): Promise<string[]>
  /** Keys of the objects. */
  list(bucket: string): Promise<string[]>
}

export interface S3Keys {
  readonly accessKeyId: string
  readonly secretAccessKey: string
}

export function createS3Admin(url: string, keys: S3Keys): S3Admin {
  const aws = new AwsClient({ ...keys, service: 's3', region: 'us-east-1', retries: 0 })
  const encode = (key: string) => key.split('/').map(encodeURIComponent).join('/')

  async function send(method: string, path: string, body?: string): Promise<Response> {
    const hash = createHash('sha256')
      .update(body ?? '')
      .digest('hex')
    const headers = { 'x-amz-content-sha256': hash }
    const request = await aws.sign(url + path, { method, headers, body: body ?? null })
    const response = await fetch(request)
    if (response.ok) return response
    throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`)
  }

  async function listKeys(path: string): Promise<string[]> {
    const text = await (await send('GET', path)).text()
    return [...text.matchAll(/<Key>([^<]*)<\/Key>/g)].map(([, key = '']) => key)
  }

  return {
    send,
    read: async (bucket, key) =>
      Buffer.from(await (await send('GET', `/${bucket}/${encode(key)}`)).arrayBuffer()),
    head: async (bucket, key) =>
      Object.fromEntries((await send('HEAD', `/${bucket}/${encode(key)}`)).headers),
    listUploads: bucket => listKeys(`/${bucket}?uploads=`),
    list: bucket => listKeys(`/${bucket}`),
  }
}
