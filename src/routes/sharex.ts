import type { RequestHandler } from 'express'
import { baseUrlOf } from './base-url.ts'
import { ROW_OF, readOptions } from './options.ts'
import { parametersOf } from './target.ts'

export interface ShareXSettings {
  readonly publicUrl?: string | undefined
  listenUrl(): string
  /** Whether the server asks for a key, so that the file needs a place for it. */
  readonly asksKey: boolean
}

/**
 * GET /upload-server.sxcu: this server as a custom uploader of ShareX (getsharex.com/docs/custom-uploader). No key is in
 * it, since everybody may fetch it; options of the request that choose a destination go into its address.
 */
export function createShareXRoute(settings: ShareXSettings): RequestHandler {
  return (req, res) => {
    const base = baseUrlOf(req, settings.publicUrl, settings.listenUrl())
    const chosen = Object.entries(readOptions(parametersOf(req.url)))
      .filter(([name]) => ROW_OF[name]?.isForShareX)
      .map(([name, value]) => [name, escapeSyntax(String(value))])
    res
      .attachment('upload-server.sxcu')
      .set('Cache-Control', 'no-store') // it holds the host that was asked for
      .type('json')
      .send(
        JSON.stringify(
          {
            Version: '17.0.0',
            Name: `upload-server at ${new URL(base).host}`,
            DestinationType: 'ImageUploader, TextUploader, FileUploader',
            RequestMethod: 'POST',
            RequestURL: `${base}upload`,
            ...(chosen.length > 0 && { Parameters: Object.fromEntries(chosen) }),
            ...(settings.asksKey && { Headers: { Authorization: 'Bearer YOUR_KEY' } }),
            Body: 'MultipartFormData',
            FileFormName: 'file',
            URL: '{json:result[0]}',
            ErrorMessage: '{json:message}',
          },
          undefined,
          2,
        ),
      )
  }
}

/** Braces and bars are ShareX's own syntax. */
function escapeSyntax(value: string): string {
  return value.replace(/[\\{}|]/g, '\\$&')
}
