import type { Request, Response } from 'express'
import { UploadError } from '../errors.ts'
import { createCanceller } from '../flow/cancellation.ts'
import { idOf, isCovered } from '../uploader/delivery/destinations.ts'
import type { Uploader } from '../uploader/index.ts'
import { type Access, admitCaller } from './access.ts'
import { queryOf } from './target.ts'

/** Seconds for which a signed address works at most. */
const SIGNED_FOR_S = 3600
/** What no key of the history is; a store may refuse to look for it. */
const NO_KEY = /^.{1025}|[\0-\x1f\x7f]/s

/**
 * GET /links/<type>/<configName>/<key>: sends visitors on to a fresh address of a private store. Only to what the history
 * knows: the rest of a bucket stays private.
 */
export function createLinksRoute(
  { destinations: all, store }: Pick<Uploader, 'destinations' | 'store'>,
  access: Access,
): (req: Request<{ type: string; name: string; key: string[] }>, res: Response) => Promise<void> {
  return async (req, res) => {
    const { type, name, key: segments } = req.params
    const destination = all.find(one => one.type === type && one.name === name && one.redirects)
    if (destination?.redirects === 'callers') {
      const { destinations } = admitCaller(req, res, queryOf(req.url), access)
      if (!isCovered(destination, destinations))
        throw new UploadError('destination_forbidden', `This key may not use ${idOf(destination)}.`)
    }
    const key = segments.join('/')
    const sign = destination?.target.sign
    const isThere = destination && !NO_KEY.test(key) && (await isKnown(store, idOf(destination), key))
    if (!sign || !isThere) throw new UploadError('not_found', 'There is no such file.')
    const method = req.method === 'HEAD' ? 'HEAD' : 'GET'
    const { url, forS } = await sign(key, method, SIGNED_FOR_S, createCanceller().signal)
    // Whoever follows it later still has time to load what it leads to.
    const maxAgeS = Math.max(0, Math.floor(forS / 2))
    res
      .status(302)
      .set({ Location: url, 'Cache-Control': `private, max-age=${maxAgeS}` })
      .end()
  }
}

async function isKnown(store: Uploader['store'], destination: string, key: string): Promise<boolean> {
  const [entry] = await store.history({ among: [destination], key, isRemoved: false, limit: 1 })
  return entry !== undefined
}
