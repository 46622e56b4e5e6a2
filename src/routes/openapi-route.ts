import type { RequestHandler } from 'express'
import { baseUrlOf } from './base-url.ts'

/** GET /openapi.json. The document and its schemas are made at the first request. */
export function createApiRoute(settings: {
  readonly publicUrl?: string | undefined
  listenUrl(): string
  readonly alwaysOk: boolean
}): RequestHandler {
  return async (req, res) => {
    const { describeApi } = await import('./openapi.ts')
    const url = baseUrlOf(req, settings.publicUrl, settings.listenUrl()).slice(0, -1)
    res.set('Cache-Control', 'no-store') // it holds the host that was asked for
    res.json(describeApi({ url, alwaysOk: settings.alwaysOk }))
  }
}
