import type { RequestHandler } from 'express'
import { once } from '../flow/once.ts'
import { baseUrlOf } from './base-url.ts'

/** Placeholder for the server's URL, which depends on the request. */
const ADDRESS = '\0'

/** GET /openapi.json. The document is generated once, at the first request. */
export function createApiRoute(settings: {
  readonly publicUrl?: string | undefined
  listenUrl(): string
  readonly alwaysOk: boolean
}): RequestHandler {
  const loadParts = once(async () => {
    const { describeApi } = await import('./openapi.ts')
    const document = JSON.stringify(describeApi({ url: ADDRESS, alwaysOk: settings.alwaysOk }))
    return document.split(JSON.stringify(ADDRESS))
  })
  return async (req, res) => {
    const parts = await loadParts()
    const url = baseUrlOf(req, settings.publicUrl, settings.listenUrl()).slice(0, -1)
    res.set('Cache-Control', 'no-store') // it holds the host that was asked for
    res.type('json').send(parts.join(JSON.stringify(url)))
  }
}
