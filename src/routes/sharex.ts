import type { Request, RequestHandler } from 'express'
import { type Access, type AccessSettings, requestFacts } from './access.ts'
import type { BaseUrl } from './base-url.ts'
import { ROW_OF, readOptions } from './options.ts'
import { parametersOf } from './target.ts'
import { signInOf } from './usage.ts'

/**
 * GET /upload-server.sxcu: this server as a custom uploader of ShareX (getsharex.com/docs/custom-uploader). No key is in
 * it, since anyone may fetch it; options of the request that choose a destination go into its address.
 */
export function createShareXRoute(settings: AccessSettings, access: Access, baseOf: BaseUrl): RequestHandler {
  return async (req, res) => {
    const credential = await credentialFor(req, settings, access)
    const base = baseOf(req)
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
            ...(credential && { Headers: { Authorization: credential } }),
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

/** A place for the upload key if the server asks for one, or for the password of the reverse proxy in front. */
async function credentialFor(
  req: Request,
  { keys, anonymous, reverseProxy }: AccessSettings,
  access: Access,
): Promise<string | undefined> {
  const key = keys.length > 0 && !anonymous ? 'Bearer YOUR_KEY' : undefined
  const caller = await access
    .admit(requestFacts(req, new URLSearchParams(), req.ip ?? ''))
    .catch(() => undefined)
  if (!caller?.isAddedByOthers || reverseProxy?.requireKey) return key
  const signIn = signInOf(req, caller, reverseProxy)
  if (signIn === 'network') return undefined
  return signIn === 'page' ? 'Bearer YOUR_KEY' : 'Basic {base64:NAME:PASSWORD}'
}

/** Braces and bars are ShareX's own syntax. */
function escapeSyntax(value: string): string {
  return value.replace(/[\\{}|]/g, '\\$&')
}
