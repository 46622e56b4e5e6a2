import { readFile } from 'node:fs/promises'
import { Agent as HttpAgent } from 'node:http'
import { Agent as HttpsAgent } from 'node:https'
import { pipeline, type Readable, Transform } from 'node:stream'
import { rootCertificates } from 'node:tls'
import type { S3Client } from '@aws-sdk/client-s3'
import { systemCode, UploadError } from '../../errors.ts'
import { importOptional } from '../optional.ts'
import type { S3Settings } from './settings.ts'

const CONNECT_TIMEOUT_MS = 10_000
/** A connection on which nothing happens for so long is given up. The SDK alone would wait for ever. */
const IDLE_TIMEOUT_MS = 60_000
/** Most of an answer that is read, in bytes; the SDK alone would keep one without end in memory. */
const MAX_REPLY_BYTES = 1024 * 1024
/** How often one part of a large object is sent before the whole upload fails. */
const PART_ATTEMPTS = 4

export type S3Sdk = typeof import('@aws-sdk/client-s3')

/** The SDK and connections to one bucket. */
export interface S3Connection {
  readonly sdk: S3Sdk
  /** Sends everything once: whole objects are sent again by deliver.ts. */
  readonly client: S3Client
  /** Sends parts of objects again by itself, so that a broken connection does not cost the parts that have arrived. */
  readonly patientClient: S3Client
  close(): void
}

export interface Agents {
  readonly httpAgent: HttpAgent
  readonly httpsAgent: HttpsAgent
}

/** How the two heavy packages get here. They are optional, since only this destination needs them. */
export function importS3(): Promise<S3Sdk> {
  // The SDK would tell everybody on Node 20 that its versions of 2027 will not run there.
  process.env['AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED'] ??= 'true'
  return importOptional('@aws-sdk/client-s3', () => import('@aws-sdk/client-s3'))
}

/** @throws UploadError `delivery_failed`, whose message is the end of a sentence, when caFile cannot be read */
export async function createAgents(caFile: string | undefined, insecureTls: boolean): Promise<Agents> {
  const ca = caFile && [...rootCertificates, await readFile(caFile, 'utf8').catch(noCertificate)]
  return {
    httpAgent: new HttpAgent({ keepAlive: true }),
    httpsAgent: new HttpsAgent({ keepAlive: true, rejectUnauthorized: !insecureTls, ...(ca && { ca }) }),
  }
}

function noCertificate(cause: unknown): never {
  throw new UploadError('delivery_failed', `"caFile" cannot be read (${systemCode(cause)})`, { cause })
}

/** Connects nothing yet. The agents end with the connection. */
export async function connectS3(settings: S3Settings, agents: Agents): Promise<S3Connection> {
  const sdk = await importS3()
  const make = (maxAttempts: number): S3Client => {
    const client = new sdk.S3Client({
      endpoint: settings.endpoint,
      region: settings.region,
      forcePathStyle: settings.style === 'path',
      bucketEndpoint: settings.style === 'cname',
      ...(settings.credentials && { credentials: settings.credentials }),
      // Trailers and chunked signatures, the SDK's default, are refused by R2, OSS, Ceph and others.
      requestChecksumCalculation: 'WHEN_REQUIRED',
      responseChecksumValidation: 'WHEN_REQUIRED',
      // An operator should hear of a wrong clock: presigned URLs are not corrected.
      disableClockSkewCorrection: true,
      // With agents of our own the SDK sends the header, but does not wait for the answer.
      expectContinueHeader: false,
      useDualstackEndpoint: false,
      useFipsEndpoint: false,
      maxAttempts,
      retryMode: 'standard',
      // Objects, not options: the SDK makes agents without our certificates for some requests otherwise.
      requestHandler: { connectionTimeout: CONNECT_TIMEOUT_MS, socketTimeout: IDLE_TIMEOUT_MS, ...agents },
      logger: { trace() {}, debug() {}, info() {}, warn() {}, error() {} },
    })
    tidyRequests(client)
    limitReplies(client)
    return client
  }
  const [client, patientClient] = [make(1), make(PART_ATTEMPTS)]
  return {
    sdk,
    client,
    patientClient,
    close() {
      client.destroy()
      patientClient.destroy()
    },
  }
}

/** No object is ever fetched here: what is answered are short documents. */
function limitReplies(client: S3Client): void {
  const handler = client.config.requestHandler
  const handle = handler.handle.bind(handler)
  handler.handle = async (request, options) => {
    const answer = await handle(request, options)
    const { response } = answer as { response: { body?: Readable } }
    // What goes wrong on either side reaches whoever reads the limited body.
    if (response.body) response.body = pipeline(response.body, limitBytes(MAX_REPLY_BYTES), () => {})
    return answer
  }
}

function limitBytes(most: number): Transform {
  let size = 0
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      size += chunk.length
      if (size <= most) done(null, chunk)
      else done(new UploadError('delivery_failed', `its answer is longer than ${most} bytes`))
    },
  })
}

interface SentRequest {
  readonly query: Record<string, unknown>
  readonly headers: Record<string, string>
}

/** Takes out what tells AWS about the SDK: Google refuses `x-id`, and every signed header is one that a proxy can break. */
function tidyRequests(client: S3Client): void {
  client.middlewareStack.addRelativeTo(
    <Args extends { request: unknown }, Reply>(next: (args: Args) => Reply) =>
      (args: Args) => {
        const request = args.request as SentRequest
        delete request.query['x-id']
        for (const name of ['amz-sdk-invocation-id', 'amz-sdk-request', 'x-amz-user-agent']) {
          delete request.headers[name]
        }
        request.headers['user-agent'] = 'upload-server'
        return next(args)
      },
    { name: 'tidyRequests', relation: 'before', toMiddleware: 'httpSigningMiddleware' },
  )
}
