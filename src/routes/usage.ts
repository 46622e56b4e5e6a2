import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { extname } from 'node:path'
import type { Request, RequestHandler, Response } from 'express'
import { UploadError } from '../errors.ts'
import { once } from '../flow/once.ts'
import type { Mask } from '../mask.ts'
import { PACKAGE_FOLDER } from '../package.ts'
import { isLocalUrl } from '../page/editors.ts'
import type { Me, SignIn, Visitor } from '../page/facts.ts'
import { FORMATS } from '../pictures/options.ts'
import { readDuration, showDuration } from '../times.ts'
import type { Uploader } from '../uploader/app.ts'
import { chooseDestination, type Destination, isCovered } from '../uploader/destinations.ts'
import type { ExpiryRule } from '../uploader/expiry.ts'
import type { Caller } from '../uploader/input.ts'
import { type Access, type AccessSettings, type RequestFacts, requestFacts } from './access.ts'
import type { BaseUrl } from './base-url.ts'
import { collectKeys } from './credentials.ts'
import { publicMessage } from './error-handler.ts'
import { isKnown } from './history.ts'
import { AmbiguousUser } from './proxy-user.ts'
import { addToLog } from './request-log.ts'
import { parametersOf } from './target.ts'

/** Allows only our own script and style, and images from anywhere, because uploaded files are served by other hosts. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data: blob: https: http:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

/** The built script and style. */
const ASSETS = new URL('dist/page/', PACKAGE_FOLDER)
const TYPES: Record<string, string> = { '.js': 'text/javascript', '.css': 'text/css' }

interface UsageSettings {
  readonly access: Pick<AccessSettings, 'reverseProxy' | 'loopbackExempt' | 'anonymous'>
  readonly limits: { readonly fileSize: number }
  readonly page: { readonly history: boolean }
}

interface UsageRoutes {
  /** GET / and GET /upload. */
  readonly page: RequestHandler
  /** GET /page/me. */
  readonly me: RequestHandler
  /** GET /page/<version>/<file>: script and style of the page. */
  readonly asset: RequestHandler<{ version: string; file: string }>
}

/**
 * The upload page, which also explains how to use this server. Everyone gets the same document in their language. What the
 * visitor may do, and the names of the destinations, are in the response of GET /page/me.
 */
export function createUsageRoutes(
  uploader: Uploader,
  access: Access,
  settings: UsageSettings,
  baseUrl: BaseUrl,
  mask: Mask,
): UsageRoutes {
  const assets = once(loadAssets)
  const baseOf = (req: Request) => baseUrl(req).replace(/\/$/, '')

  const describeVisitor = async (req: Request, res: Response): Promise<Visitor> => {
    const facts = factsOfPage(req)
    try {
      const caller = await access.admit(facts)
      access.assertSameSite(caller, { ...facts, headers: req.headers })
      const signIn = signInOf(req, caller, settings.access.reverseProxy)
      // Where the name is not enough, the visitor sent a key, too.
      const { admittedBy } = caller
      const hasKey =
        admittedBy !== 'token' && caller.user !== undefined && settings.access.reverseProxy?.requireKey
      return {
        admittedBy: signIn === undefined && admittedBy !== 'token' ? admittedBy : hasKey ? 'key' : 'proxy',
        ...(signIn && { signIn }),
        ...(caller.user !== undefined && { user: caller.user }),
        choices: listChoices(uploader, caller),
        hasHistory: settings.page.history && isKnown(caller),
        fileSize: caller.fileSize,
      }
    } catch (error) {
      if (!(error instanceof UploadError)) throw error
      // A visitor without an upload key is not logged as a failure. A wrong upload key may be a guess, as at any other route.
      if (collectKeys(facts.headers, facts.query).length > 0 || error.cause !== undefined) {
        res.err = error
        addToLog(res, { address: req.ip })
      }
      const isKeyUseless = error instanceof AmbiguousUser || error.code === 'origin_forbidden'
      return { code: error.code, message: publicMessage(error, mask), isKeyUseless }
    }
  }

  return {
    async page(req, res) {
      const { renderDocument } = await import('../page/document.ts')
      const words = await loadWords(req)
      const base = baseOf(req)
      const { loopbackExempt, anonymous } = settings.access
      const needsNoKey = anonymous || (loopbackExempt && isLocalUrl(base))
      res.set('Content-Security-Policy', POLICY)
      res.set('X-Content-Type-Options', 'nosniff')
      res.set('Referrer-Policy', 'no-referrer')
      res.set('Content-Language', words.lang)
      // The document contains the URL of the server, which a client's Host may name.
      res.set('Cache-Control', 'no-store')
      res.set('Vary', 'Accept-Language')
      const { version } = await assets()
      const credential = needsNoKey ? 'none' : 'key'
      res.type('html').send(renderDocument({ words, base, root: wayToRoot(req), version, credential }))
    },

    async me(req, res) {
      const visitor = await describeVisitor(req, res)
      const ownSize = visitor.admittedBy && visitor.fileSize
      const result: Me = {
        base: baseOf(req),
        visitor,
        pictureFormats: FORMATS,
        fileSize: Math.min(settings.limits.fileSize, ownSize ?? Infinity),
      }
      res.set('Cache-Control', 'no-store')
      res.set('X-Content-Type-Options', 'nosniff')
      res.json({ success: true, result })
    },

    async asset(req, res) {
      const { version, files } = await assets()
      const content = req.params.version === version ? files.get(req.params.file) : undefined
      if (content === undefined) throw new UploadError('not_found', `Not found: ${req.path}.`)
      res.set('Cache-Control', 'public, max-age=31536000, immutable')
      res.set('X-Content-Type-Options', 'nosniff')
      res.type(TYPES[extname(req.params.file)] ?? '').send(content)
    },
  }
}

/** Loads the texts in the language that the browser prefers, unless `?lang=` selects one. */
async function loadWords(req: Request) {
  const chosen = parametersOf(req.url).get('lang')
  const language = chosen ?? req.acceptsLanguages('en', 'zh')
  return language === 'zh'
    ? (await import('../page/words-zh.ts')).zh
    : (await import('../page/words-en.ts')).en
}

/**
 * The facts of the uploads that the page will send. They include the origin, which browsers omit when they request a page,
 * but not the query, because the page never sends an upload key there.
 */
function factsOfPage(req: Request): RequestFacts {
  const facts = requestFacts(req, new URLSearchParams(), req.ip ?? '')
  return { ...facts, headers: { origin: `${req.protocol}://${req.host}`, ...facts.headers } }
}

/** How the reverse proxy knows the client. Undefined if the client sent its own key, or needs none. */
export function signInOf(
  req: Request,
  caller: Caller,
  proxy: AccessSettings['reverseProxy'],
): SignIn | undefined {
  // A browser has no token, so a reverse proxy added it.
  if (caller.admittedBy === 'token') return 'page'
  if (caller.user !== undefined && proxy?.preset === 'tailscale') return 'network'
  if (caller.user !== undefined && proxy?.preset !== undefined) return 'page'
  // Browsers send no key when they load a page, so a reverse proxy added it.
  const isAdded = caller.admittedBy === 'key' && req.headers['x-requested-with'] === undefined
  return caller.user !== undefined || isAdded ? 'password' : undefined
}

function listChoices(uploader: Uploader, caller: Caller): (Visitor & { admittedBy: string })['choices'] {
  const preset = findDefault(uploader, caller)
  return uploader.destinations
    .filter(one => isCovered(one, caller.destinations))
    .map(one => ({
      picbed: one.type,
      configName: one.name,
      isDefault: one === preset,
      pictures: one.pictures?.allowFromRequest ?? [],
      expiry: listTimes(one.expiry),
    }))
}

/** The expiry times that the page offers, in addition to the maximum of the destination. */
const TIMES = ['1h', '1d', '7d', '30d', '90d', '365d'].map(time => readDuration(time) ?? 0)

/** The expiry times that a destination allows, its default first. */
function listTimes(rule: ExpiryRule | undefined): readonly string[] {
  if (!rule) return []
  const { max } = rule
  const standard = rule.default ?? max ?? 'never'
  const allowed = new Set(max === undefined ? TIMES : [...TIMES.filter(time => time <= max), max])
  const others = [...allowed].filter(time => time !== standard).map(showDuration)
  if (standard === 'never') return ['never', ...others]
  return [showDuration(standard), ...others, ...(max === undefined ? ['never'] : [])]
}

function findDefault(uploader: Uploader, caller: Caller): Destination | undefined {
  try {
    return chooseDestination(uploader, {}, caller.destinations)
  } catch {
    return undefined
  }
}

/** The relative path to the root. From `/upload/`, which is also this page, that is one level up. It works below any base path. */
function wayToRoot(req: Request): string {
  const [path = ''] = req.originalUrl.split('?')
  return '../'.repeat(/upload(\/*)$/.exec(path)?.[1]?.length ?? 0)
}

interface Assets {
  /** A hash of the contents. */
  readonly version: string
  readonly files: ReadonlyMap<string, Buffer>
}

async function loadAssets(): Promise<Assets> {
  const names = (await readdir(ASSETS)).filter(name => extname(name) in TYPES).sort()
  const files = new Map<string, Buffer>()
  const hash = createHash('sha256')
  for (const name of names) {
    const content = await readFile(new URL(name, ASSETS))
    files.set(name, content)
    hash.update(name).update(content)
  }
  return { version: hash.digest('hex').slice(0, 12), files }
}
