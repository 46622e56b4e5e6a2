import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { extname } from 'node:path'
import type { Request, RequestHandler, Response } from 'express'
import { UploadError } from '../errors.ts'
import { once } from '../flow/once.ts'
import type { Mask } from '../mask.ts'
import type { PageFacts, Visitor } from '../page/facts.ts'
import { FORMATS } from '../pictures/options.ts'
import { readDuration, showDuration } from '../times.ts'
import { type Destination, isCovered } from '../uploader/delivery/destinations.ts'
import type { ExpiryRule } from '../uploader/expires.ts'
import type { Uploader } from '../uploader/index.ts'
import type { Caller } from '../uploader/input.ts'
import { type Access, type RequestFacts, requestFacts } from './access.ts'
import { baseUrlOf } from './base-url.ts'
import { collectKeys } from './credentials.ts'
import { publicMessage } from './error-handler.ts'
import { isKnown } from './history.ts'
import { addToLog } from './request-log.ts'
import { parametersOf } from './target.ts'

/** Nothing inline, nothing from elsewhere but pictures: the links that uploads get lead anywhere. */
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

/** Script and style as the build leaves them; the same folder from `src` and from `dist`. */
const ASSETS = new URL('../../dist/page/client/', import.meta.url)
const TYPES: Record<string, string> = { '.js': 'text/javascript', '.css': 'text/css' }

/** Pages that are kept: they differ by language, visitor and the address that was asked. */
const MOST_PAGES = 16

interface UsageSettings {
  readonly publicUrl?: string | undefined
  listenUrl(): string
  readonly limits: { readonly fileSize: number }
  readonly page: { readonly history: boolean }
}

interface UsageRoutes {
  /** GET / and GET /upload. */
  readonly page: RequestHandler
  /** GET /page/<version>/<file>: its script and style. */
  readonly asset: RequestHandler<{ version: string; file: string }>
}

/**
 * How to use this very server, for a person with a browser, and a place to try it. Everybody may see it; what the
 * destinations are called only those who may upload. It shows no secret, and needs nothing that is read before somebody asks.
 */
export function createUsageRoutes(
  uploader: Uploader,
  access: Access,
  settings: UsageSettings,
  mask: Mask,
): UsageRoutes {
  const assets = once(loadAssets)
  const pages = new Map<string, string>()

  const describeVisitor = (req: Request, res: Response): Visitor => {
    const facts = factsOfPage(req)
    try {
      const caller = access.admit(facts)
      const isProxys = caller.admittedBy === 'key' && req.headers['x-requested-with'] === undefined
      return {
        admittedBy: isProxys ? 'proxy' : caller.admittedBy,
        ...(caller.user !== undefined && { user: caller.user }),
        choices: listChoices(uploader, caller),
        hasHistory: settings.page.history && isKnown(caller),
      }
    } catch (error) {
      if (!(error instanceof UploadError)) throw error
      // Without a key somebody only looks at the page; with a wrong one it may be a guess, as at any other route.
      if (collectKeys(facts.headers, facts.query).length > 0) {
        res.err = error
        addToLog(res, { address: req.ip })
      }
      return { code: error.code, message: publicMessage(error, mask) }
    }
  }

  return {
    async page(req, res) {
      const { renderDocument } = await import('../page/document.ts')
      const facts: PageFacts = {
        words: await loadWords(req),
        base: baseUrlOf(req, settings.publicUrl, settings.listenUrl()).replace(/\/$/, ''),
        root: wayToRoot(req),
        version: (await assets()).version,
        visitor: describeVisitor(req, res),
        pictureFormats: FORMATS,
        fileSize: settings.limits.fileSize,
      }
      res.set('Content-Security-Policy', POLICY)
      res.set('X-Content-Type-Options', 'nosniff')
      res.set('Referrer-Policy', 'no-referrer')
      res.set('Content-Language', facts.words.lang)
      // It differs by visitor, and holds names.
      res.set('Cache-Control', 'no-store')
      res.set('Vary', 'Accept-Language')
      const known = JSON.stringify({ ...facts, words: facts.words.lang })
      const document = pages.get(known) ?? renderDocument(facts)
      if (pages.size >= MOST_PAGES) pages.clear()
      pages.set(known, document)
      res.type('html').send(document)
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

/** What the browser prefers, unless the visitor chose by `?lang=`. */
async function loadWords(req: Request) {
  const chosen = parametersOf(req.url).get('lang')
  const language = chosen ?? req.acceptsLanguages('en', 'zh')
  return language === 'zh'
    ? (await import('../page/words-zh.ts')).zh
    : (await import('../page/words-en.ts')).en
}

/**
 * Of the uploads the page will send: with its origin, which a browser leaves out when it asks for a page, and without
 * the query, where the page never puts a key.
 */
function factsOfPage(req: Request): RequestFacts {
  const facts = requestFacts(req, new URLSearchParams(), req.ip ?? '')
  return { ...facts, headers: { origin: `${req.protocol}://${req.host}`, ...facts.headers } }
}

function listChoices(uploader: Uploader, caller: Caller): (Visitor & { admittedBy: string })['choices'] {
  const preset = findDefault(uploader, caller)
  return uploader.destinations
    .filter(one => isCovered(one, caller.destinations))
    .map(one => ({
      picbed: one.type,
      configName: one.name,
      isDefault: one === preset,
      pictures: one.pictures?.requests ?? [],
      expiry: listTimes(one.expiry),
    }))
}

/** What the page offers, beside what a destination keeps files for at most. */
const TIMES = ['1h', '1d', '7d', '30d', '90d', '365d'].map(time => readDuration(time) ?? 0)

/** Times that a destination allows, first what holds without a wish. */
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
    return uploader.choose({}, caller)
  } catch {
    return undefined
  }
}

/** From `/upload/`, which is `/upload` as well, the root is one level up. Relative, so that it holds below any path. */
function wayToRoot(req: Request): string {
  const [path = ''] = req.originalUrl.split('?')
  return '../'.repeat(/upload(\/*)$/.exec(path)?.[1]?.length ?? 0)
}

interface Assets {
  /** Changes with every byte of them. */
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
