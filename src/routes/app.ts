import type { IncomingMessage, RequestListener } from 'node:http'
import { fileURLToPath } from 'node:url'
import express, { type Express, type Request, type RequestHandler, type Response } from 'express'
import { UploadError } from '../errors.ts'
import type { Logger } from '../log.ts'
import type { Mask } from '../mask.ts'
import { PACKAGE_FOLDER } from '../package.ts'
import type { Uploader } from '../uploader/app.ts'
import { type AccessSettings, createAccess } from './access.ts'
import { type BaseUrlSettings, createBaseUrl } from './base-url.ts'
import { createCors } from './cors.ts'
import { createErrorHandler } from './error-handler.ts'
import { createFailureWindow, type FailureWindow } from './failure-window.ts'
import { createFilesRoute } from './files.ts'
import { answerProbe, type Probe } from './heartbeat.ts'
import { createHistoryRoute } from './history.ts'
import { isHost } from './host.ts'
import { createKnownRoute } from './known.ts'
import { createLinksRoute } from './links.ts'
import type { Metrics } from './metrics.ts'
import { createMetricsRoute } from './metrics-route.ts'
import { wantsOk } from './options.ts'
import { createReadyRoute, shuttingDown } from './ready.ts'
import { createRequestLog } from './request-log.ts'
import { createShareXRoute } from './sharex.ts'
import { parametersOf, pathnameOf } from './target.ts'
import { createUploadRoute, type UploadAnswer, type UploadRouteSettings } from './upload.ts'
import { createUsageRoutes } from './usage.ts'

/** Counters that a reload of the configuration keeps. */
export interface Limiters {
  /** Failed attempts with upload keys. */
  readonly keys: FailureWindow
  /** Failed attempts with the metrics token. They don't count against upload keys. */
  readonly tokens: FailureWindow
}

export function createLimiters(): Limiters {
  const now = () => performance.now()
  return { keys: createFailureWindow(now), tokens: createFailureWindow(now) }
}

export interface AppDeps {
  readonly uploader: Uploader
  readonly logger: Logger
  readonly mask: Mask
  /** Undefined if metrics are disabled. */
  readonly metrics?: Metrics | undefined
  /** Whether the graceful shutdown has begun. */
  isStopping(): boolean
  /** Whether the graceful shutdown has lasted so long that new requests are rejected. */
  isRefusing(): boolean
  readonly limiters: Limiters
  /** Keeps the destinations open until the promise settles. */
  track<T>(work: Promise<T>): Promise<T>
}

export interface AppSettings extends UploadRouteSettings, BaseUrlSettings {
  readonly access: AccessSettings
  /** Express's "trust proxy". */
  readonly trustProxy: readonly string[]
  /** `token`: bearer token of scrapers on other machines. */
  readonly metrics: { readonly token?: string | undefined }
  /** `history`: whether clients may read their own uploads. */
  readonly page: { readonly history: boolean }
  /** Whether the server listens on a Unix socket. */
  readonly isOnSocket: boolean
}

/** `curl -T picture.png …/upload/` appends the file name to the URL. */
const UPLOAD_PATHS = ['/upload', '/upload/:name']

export interface App {
  readonly answer: RequestListener
}

/** Builds the HTTP application. It doesn't listen on a port or read the configuration. */
export function createApp(deps: AppDeps, settings: AppSettings): App {
  const { uploader, mask, metrics } = deps
  const access = createAccess(settings.access, deps.limiters.keys)
  const app = express()
  app.disable('x-powered-by').disable('etag').enable('case sensitive routing')
  trustProxies(app, settings)
  app.set('query parser', false)

  const logRequest = createRequestLog(deps.logger, mask)
  const allowOrigins = createCors(access.isTrustedOrigin)
  const assertServed = (req: Request) => {
    requireHost(req)
    if (deps.isRefusing()) throw shuttingDown()
  }
  const baseOf = createBaseUrl(settings)
  const uploading = (answer: UploadAnswer, isUpload: boolean) => (req: Request, res: Response) => {
    // Set before anything can fail: the error handler sends another body for failed uploads.
    res.locals.isUpload = isUpload
    const query = parametersOf(req.url)
    res.locals.alwaysOk = settings.alwaysOk || wantsOk(query)
    assertServed(req)
    // A request with an Idempotency-Key continues after its client has disconnected.
    return deps.track(answer(req, res, query))
  }
  const upload = uploading(createUploadRoute(uploader, access, settings, baseOf, mask, metrics), true)
  const known = uploading(createKnownRoute(uploader, access, settings, baseOf, mask), false)
  app.post('/upload', upload)
  app.put(UPLOAD_PATHS, upload)
  app.route('/upload/known').post(known).all(onlyMethods('POST, PUT, OPTIONS'))
  app.use((req, _res, next) => {
    assertServed(req)
    next()
  })

  const { page, me, asset } = createUsageRoutes(uploader, access, settings, baseOf, mask)
  const probe =
    (name: Probe): RequestHandler =>
    (_req, res) =>
      answerProbe(name, res)
  const heartbeat = probe('/heartbeat')
  app.route('/heartbeat').get(heartbeat).post(heartbeat).all(onlyMethods('GET, HEAD, POST, OPTIONS'))
  const get = <P>(path: string, handler: RequestHandler<P>) =>
    app.route(path).get(handler).all(onlyMethods('GET, HEAD, OPTIONS'))
  const tracked =
    <P>(answer: (req: Request<P>, res: Response) => Promise<void>): RequestHandler<P> =>
    (req, res) =>
      deps.track(answer(req, res))
  get('/health', probe('/health'))
  get('/ready', createReadyRoute(uploader, deps.isStopping))
  get('/', page)
  app.route('/upload').get(page).all(onlyMethods('GET, HEAD, POST, PUT, OPTIONS'))
  get('/upload-server.sxcu', createShareXRoute(settings.access, access, baseOf))
  get('/openapi.json', (_req, res) =>
    res.sendFile('dist/openapi.json', { root: fileURLToPath(PACKAGE_FOLDER) }),
  )
  if (metrics) {
    const { token } = settings.metrics
    get('/metrics', createMetricsRoute(metrics, token, settings.access, deps.limiters.tokens))
  }
  get('/files/:name/*key', tracked(createFilesRoute(uploader.destinations, settings.limits.bodyIdleMs)))
  get('/links/:type/:name/*key', tracked(createLinksRoute(uploader, access)))
  get('/history', tracked(createHistoryRoute(uploader, access, settings.page.history, baseOf)))
  get('/page/me', me)
  get('/page/:version/:file', asset)
  app.use(notFound)
  app.use(createErrorHandler(mask))
  return {
    // These steps are not middleware, because Express's dispatch takes longer than the steps themselves.
    answer(req, res) {
      normaliseTarget(req)
      logRequest(req, res)
      metrics?.count(req, res)
      if (!allowOrigins(req, res)) app(req, res)
    },
  }
}

/** The peer of a Unix socket has no IP address. It is trusted if any proxy is. */
function trustProxies(app: Express, { trustProxy, isOnSocket }: AppSettings): void {
  app.set('trust proxy', trustProxy.length > 0 ? [...trustProxy] : false)
  if (!isOnSocket || trustProxy.length === 0) return
  const isTrusted: (address: string | undefined, hop: number) => boolean = app.get('trust proxy fn')
  app.set('trust proxy', (address: string | undefined, hop: number) =>
    address === undefined ? hop === 0 : isTrusted(address, hop),
  )
}

/**
 * Normalises the request target. An absolute-form target is reduced to its path, and its host replaces the `Host` header
 * (RFC 9112 section 3.2.2). Express would have Node parse the URL, and Node prints warnings that quote it, secrets included.
 * `/upload/` and `//upload` become `/upload`, because some clients append to the URL that a person typed.
 */
function normaliseTarget(req: IncomingMessage & { originalUrl?: string }): void {
  let target = req.url ?? ''
  const [, host, rest] = /^[a-z][a-z0-9+.-]*:\/\/([^/?#]*)(.*)$/i.exec(target) ?? []
  if (host !== undefined) {
    req.headers.host = host
    target = rest?.startsWith('/') ? rest : `/${rest}`
  }
  req.originalUrl = target // Express's name for the target as it was sent
  const path = pathnameOf(target)
  if (path.includes('//') || (path.length > 1 && path.endsWith('/')))
    target = (path.replace(/\/+/g, '/').replace(/(?<=.)\/$/, '') || '/') + target.slice(path.length)
  req.url = target
}

/** Requires a valid `Host` (RFC 9112 section 3.2). Links begin with it, so it is checked before anything is stored. */
function requireHost({ httpVersion, headers, headersDistinct }: Request): void {
  if (httpVersion === '1.1' && headers.host === undefined)
    throw new UploadError('invalid_request', 'The request has no "Host" header, as HTTP/1.1 requires.')
  if (headers.host !== undefined && !isHost(headers.host))
    throw new UploadError(
      'invalid_request',
      'The "Host" header of the request is not a host name or an IP address.',
    )
  // A reverse proxy may have evaluated another one of them.
  if ((headersDistinct['host']?.length ?? 0) > 1)
    throw new UploadError('invalid_request', 'The request has more than one "Host" header.')
}

function onlyMethods(allowed: string): RequestHandler {
  return (req, res) => {
    res.set('Allow', allowed)
    throw new UploadError(
      'method_not_allowed',
      `${req.method} is not allowed on ${req.path}. Allowed methods: ${allowed}.`,
    )
  }
}

/** There is no delete route. PicList's clients request one, so its 404 says what to do instead. */
const notFound: RequestHandler = (req: Request) => {
  if (req.path === '/delete') {
    throw new UploadError(
      'not_found',
      'Deleting over HTTP is not supported. Run "upload-server remove LINK" on the server.',
    )
  }
  throw new UploadError('not_found', `Not found: ${req.path}. To upload, use POST /upload.`)
}
