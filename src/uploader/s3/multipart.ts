import type { CompletedPart, CreateMultipartUploadCommandInput } from '@aws-sdk/client-s3'
import { readParts } from '../body.ts'
import type { UploadObject } from '../provider.ts'
import type { S3Connection } from './client.ts'

/** Parts that are sent at the same time, and so the parts in memory. */
const PARALLEL = 2
/** How long taking back a failed upload may last. */
const TAKE_BACK_MS = 10_000

/** Bucket, key and headers of an object. */
export type ObjectHead = CreateMultipartUploadCommandInput & { Bucket: string; Key: string }

/**
 * Sends an object in parts. Ends at the first part that fails for good, and takes back what had arrived.
 *
 * Not done by @aws-sdk/lib-storage (3.1169): it sends all remaining parts after one has failed, lets requests go on
 * when it is aborted, and never ends when the body stalls.
 */
export async function putInParts(
  { sdk, client, patientClient }: S3Connection,
  head: ObjectHead,
  object: UploadObject,
  partSize: number,
  signal: AbortSignal,
): Promise<void> {
  const { Bucket, Key } = head
  const { UploadId } = await client.send(new sdk.CreateMultipartUploadCommand(head), { abortSignal: signal })
  const upload = { Bucket, Key, UploadId }
  const failed = new AbortController()
  const abortSignal = AbortSignal.any([signal, failed.signal])
  const parts = readParts(object, partSize, abortSignal)
  const sent: CompletedPart[] = []

  async function sendParts(): Promise<void> {
    for await (const { number: PartNumber, bytes: Body, release } of parts) {
      const command = new sdk.UploadPartCommand({ ...upload, PartNumber, Body, ContentLength: Body.length })
      const { ETag } = await patientClient.send(command, { abortSignal })
      sent.push({ PartNumber, ETag })
      release()
    }
  }

  try {
    await Promise.all(Array.from({ length: PARALLEL }, () => sendParts().catch(error => failed.abort(error))))
    abortSignal.throwIfAborted()
    const Parts = sent.sort((a, b) => (a.PartNumber ?? 0) - (b.PartNumber ?? 0))
    const complete = new sdk.CompleteMultipartUploadCommand({ ...upload, MultipartUpload: { Parts } })
    await patientClient.send(complete, { abortSignal })
  } catch (error) {
    const takeBack = new sdk.AbortMultipartUploadCommand(upload)
    await client.send(takeBack, { abortSignal: AbortSignal.timeout(TAKE_BACK_MS) }).catch(() => {})
    throw error
  }
}
