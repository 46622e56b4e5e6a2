import { hash } from 'node:crypto'
import { mapConcurrently } from '../../flow/map-concurrently.ts'
import { readElements } from '../shared/xml-path.ts'
import { bodyOf, escapeXml, findObject, notS3, type S3Client } from './client.ts'
import { isFromService, isTransient, Refusal } from './refusal.ts'
import type { S3Settings } from './settings.ts'

/** Maximum number of objects in one request. */
const MOST_KEYS = 1000
/** Number of objects that are removed at a time if the service does not remove several with one request. */
const PARALLEL = 8

/** Removes an object. A missing object counts as removed. */
export async function removeObject(
  s3: S3Client,
  { keyPrefix }: S3Settings,
  key: string,
  signal: AbortSignal,
): Promise<void> {
  try {
    const { headers } = await s3.send({ method: 'DELETE', key: keyPrefix + key }, signal)
    if (isFromService(headers)) return
  } catch (error) {
    if (!(error instanceof Refusal) || error.facts.code !== 'NoSuchKey') throw error
  }
  if (await findObject(s3, keyPrefix + key, signal)) throw notS3()
}

/**
 * Removes objects with DeleteObjects. Those that the response does not list as deleted are removed one by one: some services
 * do not have this request, and a failure is explained then.
 *
 * @param removeOne explains its failures
 * @returns the reason for each object that could not be removed, by key
 */
export async function removeObjects(
  s3: S3Client,
  { keyPrefix }: S3Settings,
  keys: readonly string[],
  removeOne: (key: string) => Promise<void>,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, unknown>> {
  const problems = new Map<string, unknown>()
  for (let start = 0; start < keys.length; start += MOST_KEYS) {
    const some = keys.slice(start, start + MOST_KEYS)
    const deleted = await deleteObjects(
      s3,
      some.map(key => keyPrefix + key),
      signal,
    )
    const others = some.filter(key => !deleted.has(keyPrefix + key))
    await mapConcurrently(others, PARALLEL, async key => {
      await removeOne(key).catch(error => problems.set(key, error))
    })
  }
  return problems
}

/** @returns the keys that the response lists as deleted: none if the service rejects the request */
async function deleteObjects(
  s3: S3Client,
  keys: readonly string[],
  signal: AbortSignal,
): Promise<ReadonlySet<string>> {
  const objects = keys.map(key => `<Object><Key>${escapeXml(key)}</Key></Object>`).join('')
  const list = Buffer.from(`<Delete xmlns="http://s3.amazonaws.com/doc/2006-03-01/">${objects}</Delete>`)
  // Services require this hash. Few of them accept another one.
  const headers = { 'content-type': 'application/xml', 'content-md5': hash('md5', list, 'base64') }
  const body = bodyOf(list)
  try {
    const { text } = await s3.send({ method: 'POST', key: '', query: { delete: '' }, headers, body }, signal)
    return new Set(readElements(text, 'Deleted').map(element => element.get('Key') ?? ''))
  } catch (error) {
    if (signal.aborted || isTransient(error)) throw error
    return new Set()
  }
}
