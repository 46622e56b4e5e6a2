import { randomUUID } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import type { S3Client } from './client.ts'
import { notS3 } from './put.ts'
import { isFromService, Refusal } from './refusal.ts'

/**
 * The headers of an object; undefined when there is none of that key.
 *
 * @param key with the folder in front of it
 * @throws UploadError `delivery_failed` when it was answered by something that says yes to every key
 */
export async function findObject(
  s3: S3Client,
  key: string,
  signal: AbortSignal,
): Promise<IncomingHttpHeaders | undefined> {
  const found = await ask(s3, key, signal)
  if (found.status === 404) return undefined
  if (isFromService(found.headers)) return found.headers
  // Some services give their answers no id. Then they give none to others either, and do not have everything.
  const other = await ask(s3, `${key}-${randomUUID()}`, signal)
  if (other.status !== 404 || isFromService(other.headers)) throw notS3()
  return found.headers
}

async function ask(
  s3: S3Client,
  key: string,
  signal: AbortSignal,
): Promise<{ status: number; headers: IncomingHttpHeaders }> {
  try {
    return await s3.send({ method: 'HEAD', key }, signal)
  } catch (error) {
    if (error instanceof Refusal && error.facts.status === 404) return error.facts
    throw error
  }
}
