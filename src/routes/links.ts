import type { Request, Response } from 'express'
import { UploadError } from '../errors.ts'
import { createCanceller } from '../flow/cancellation.ts'
import type { Database } from '../store/database.ts'
import { findFiles } from '../store/history.ts'
import { objectName } from '../store/objects.ts'
import type { Uploader } from '../uploader/app.ts'
import { type Destination, idOf, isCovered } from '../uploader/destinations.ts'
import { type Access, admitCaller, requestFacts } from './access.ts'
import { parametersOf } from './target.ts'

/** Maximum validity of a presigned URL, seconds. */
const SIGNED_FOR_S = 3600
/** Text that can't be in an object key. Databases may refuse to search for it. */
const NO_KEY = /^.{1025}|[\0-\x1f\x7f]/s

/**
 * GET /links/<type>/<configName>/<key>: redirects to a new presigned URL in a private bucket. Only for files in the history,
 * so the rest of the bucket stays private.
 */
export function createLinksRoute(
  { destinations: all, database }: Pick<Uploader, 'destinations' | 'database'>,
  access: Access,
): (req: Request<{ type: string; name: string; key: string[] }>, res: Response) => Promise<void> {
  // An unknown destination gets the same status as one with linkAccess "callers", so that the status reveals nothing.
  const asksCallers = all.some(one => one.redirects === 'callers')
  return async (req, res) => {
    const { type, name, key: segments } = req.params
    const destination = all.find(one => one.type === type && one.name === name && one.redirects)
    if (destination?.redirects !== 'anyone' && asksCallers) {
      const facts = requestFacts(req, parametersOf(req.url), req.ip ?? '')
      const { destinations } = await admitCaller(facts, res, access)
      if (!isCovered({ type, name }, destinations))
        throw new UploadError('destination_forbidden', `This key may not use ${idOf({ type, name })}.`)
    }
    const key = segments.join('/')
    const sign = destination?.target.sign
    const isThere = destination && !NO_KEY.test(key) && (await isKnown(database, destination, key))
    if (!sign || !isThere) throw new UploadError('not_found', 'File not found.')
    const method = req.method === 'HEAD' ? 'HEAD' : 'GET'
    const { url, forS } = await sign(key, method, SIGNED_FOR_S, createCanceller().signal)
    // A browser that uses the cached redirect later still has time to load the file.
    const maxAgeS = Math.max(0, Math.floor(forS / 2))
    res
      .status(302)
      .set({ Location: url, 'Cache-Control': `private, max-age=${maxAgeS}` })
      .end()
  }
}

/** Whether a file was uploaded to this destination at this key. The destination may have had another bucket before. */
async function isKnown(database: Database, destination: Destination, key: string): Promise<boolean> {
  const objects = [objectName(destination.location, key)]
  const filter = { among: [idOf(destination)], objects, key, isRemoved: false, limit: 1 }
  const [entry] = await database.read(db => findFiles(db, filter))
  return entry !== undefined
}
