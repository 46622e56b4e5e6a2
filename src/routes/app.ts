import type { IncomingMessage, RequestListener } from 'node:http'
import express, { type Express, type Request, type RequestHandler, type Response } from 'express'
import { UploadError } from '../errors.ts'
import type { Logger } from '../log.ts'
import { isLoopbackAddress } from '../loopback-address.ts'
import type { Mask } from '../mask.ts'
import type { Uploader } from '../uploader/index.ts'
import { type AccessSettings, createAccess } from './access.ts'
import { createCors } from './cors.ts'
import { createErrorHandler } from './error-handler.ts'
import { createFailureWindow, type FailureWindow } from './failure-window.ts'
import { createFilesRoute } from './files.ts'
import { answerHeartbeat } from './heartbeat.ts'
import { createHistoryRoute } from './history.ts'
import { isHost } from './host.ts'
import { createLinksRoute } from './links.ts'
import { createListMemory, type ListMemory } from './list-memory.ts'
import { findForwardingHeader } from './loopback.ts'
import type { Prototypes } from './message-types.ts'
import type { Metrics } from './metrics.ts'
import { createMetricsRoute } from './metrics-route.ts'
import { createApiRoute } from './openapi-route.ts'
import { wantsOk } from './options.ts'
import { createRequestLog } from './request-log.ts'
import { createShareXRoute } from './sharex.ts'
import { pathOf, queryOf } from './target.ts'
import { createUploadRoute, type UploadRouteSettings } from './upload.ts'
import { createUsageRoutes } from './usage.ts'

/** What is counted across reloads. */
export interface Limiters {
  /** Wrong upload keys. */
  readonly keys: FailureWindow
  /** Wrong tokens for the metrics, which are not held against upload keys. */
  readonly tokens: FailureWindow
  /** What lists hold in memory. */
  readonly lists: ListMemory
}

export function createLimiters(): Limiters {
  const now = () => performance.now()
  return { keys: createFailureWindow(now), tokens: createFailureWindow(now), lists: createListMemory() }
}

export interface AppDeps {
  readonly uploader: Uploader
  readonly logger: Logger
  readonly mask: Mask
  /** Undefined when they are switched off. */
  readonly metrics?: Metrics | undefined
  /** True once the server is going down: nothing new is begun. */
  isStopping(): boolean
  readonly limiters: Limiters
  /** Called when a proxy on this machine passes requests on, which others may get the exemption of loopback by. */
  noteProxy(): void
  /** Keeps the destinations open until the work is over. */
  track<T>(work: Promise<T>): Promise<T>
}

export interface AppSettings extends UploadRouteSettings {
  readonly access: AccessSettings
  /** Express's "trust proxy". */
  readonly trustProxy: readonly string[]
  /** `token`: what scrapers from elsewhere send. */
  readonly metrics: { readonly token?: string | undefined }
  /** Whether callers are shown what they uploaded. */
  readonly page: { readonly history: boolean }
  /** Whether it listens on a Unix socket. */
  readonly isOnSocket: boolean
}

/** `curl -T picture.png …/upload/` appends the name. */
const UPLOAD_PATHS = ['/upload', '/upload/:name']

/** What answers requests, and what Express puts behind each of them. */
export interface App extends Prototypes {
  readonly answer: RequestListener
}

/** Builds the HTTP application. It never listens and reads no configuration. */
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
    if (deps.isStopping()) throw goingDown()
  }
  const { loopbackExempt } = settings.access
  const lookForProxy = ({ socket, headers }: IncomingMessage) => {
    if (!loopbackExempt || !isLoopbackAddress(socket.remoteAddress)) return
    if (findForwardingHeader(headers) !== undefined) deps.noteProxy()
  }
  const answerUpload = createUploadRoute(uploader, access, settings, mask, deps.limiters.lists)
  const upload: RequestHandler = (req, res) => {
    // Before anything can fail, for the error handler: failed uploads have an answer of their own.
    res.locals.isUpload = true
    res.locals.alwaysOk = settings.alwaysOk || wantsOk(queryOf(req.url))
    assertServed(req)
    // What was asked for with an Idempotency-Key goes on when its client has left.
    return deps.track(answerUpload(req, res))
  }
  app.post('/upload', upload)
  app.put(UPLOAD_PATHS, upload)
  app.use((req, _res, next) => {
    assertServed(req)
    next()
  })

  const { page, asset } = createUsageRoutes(uploader, access, settings, mask)
  const heartbeat: RequestHandler = (_req, res) => answerHeartbeat(res)
  app.route('/heartbeat').get(heartbeat).post(heartbeat).all(onlyMethods('GET, HEAD, POST, OPTIONS'))
  const get = <P>(path: string, handler: RequestHandler<P>) =>
    app.route(path).get(handler).all(onlyMethods('GET, HEAD, OPTIONS'))
  const tracked =
    <P>(answer: (req: Request<P>, res: Response) => Promise<void>): RequestHandler<P> =>
    (req, res) =>
      deps.track(answer(req, res))
  get('/', page)
  app.route('/upload').get(page).all(onlyMethods('GET, HEAD, POST, PUT, OPTIONS'))
  const { keys, anonymous } = settings.access
  get('/upload-server.sxcu', createShareXRoute({ ...settings, asksKey: keys.length > 0 && !anonymous }))
  get('/openapi.json', createApiRoute(settings))
  if (metrics) {
    const { token } = settings.metrics
    get('/metrics', createMetricsRoute(metrics, token, settings.access, deps.limiters.tokens))
  }
  get('/files/:name/*key', tracked(createFilesRoute(uploader.destinations, settings.limits.bodyIdleMs)))
  get('/links/:type/:name/*key', tracked(createLinksRoute(uploader, access)))
  get('/history', tracked(createHistoryRoute(uploader, access, settings.page.history)))
  get('/page/:version/:file', asset)
  app.use(notFound)
  app.use(createErrorHandler(mask))
  return {
    // What goes before every route is no middleware: the way from one to the next takes longer than what they do.
    answer(req, res) {
      takePath(req)
      logRequest(req, res)
      lookForProxy(req)
      metrics?.count(req, res)
      if (!allowOrigins(req, res)) app(req, res)
    },
    request: app.request,
    response: app.response,
  }
}

/** Whoever sits at the other end of a Unix socket has no address; it is trusted as soon as any proxy is. */
function trustProxies(app: Express, { trustProxy, isOnSocket }: AppSettings): void {
  app.set('trust proxy', trustProxy.length > 0 ? [...trustProxy] : false)
  if (!isOnSocket || trustProxy.length === 0) return
  const isTrusted: (address: string | undefined, hop: number) => boolean = app.get('trust proxy fn')
  app.set('trust proxy', (address: string | undefined, hop: number) =>
    address === undefined ? hop === 0 : isTrusted(address, hop),
  )
}

/**
 * A target that is a whole address counts as its path, and its host as the one that was asked (RFC 9112 section 3.2.2).
 * Express would have Node read the address, which warns of some with all that stands in them. `/upload/` and `//upload`
 * are `/upload`: some clients append to what a person typed.
 */
function takePath(req: IncomingMessage & { originalUrl?: string }): void {
  let target = req.url ?? ''
  const [, host, rest] = /^[a-z][a-z0-9+.-]*:\/\/([^/?#]*)(.*)$/i.exec(target) ?? []
  if (host !== undefined) {
    req.headers.host = host
    target = rest?.startsWith('/') ? rest : `/${rest}`
  }
  req.originalUrl = target // Express's word for what was asked
  const path = pathOf(target)
  if (path.includes('//') || (path.length > 1 && path.endsWith('/')))
    target = (path.replace(/\/+/g, '/').replace(/(?<=.)\/$/, '') || '/') + target.slice(path.length)
  req.url = target
}

/** RFC 9112 section 3.2. Links begin with it, so nothing is stored before it is known to be one. */
function requireHost({ httpVersion, headers, rawHeaders }: Request): void {
  if (httpVersion === '1.1' && headers.host === undefined)
    throw new UploadError('invalid_request', 'The request has no "Host" header, as HTTP/1.1 requires.')
  if (headers.host !== undefined && !isHost(headers.host))
    throw new UploadError('invalid_request', 'The "Host" of the request is no host name and no IP address.')
  // A proxy may have looked at another one than we.
  if (rawHeaders.filter((text, i) => i % 2 === 0 && text.toLowerCase() === 'host').length > 1)
    throw new UploadError('invalid_request', 'The request has more than one "Host" header.')
}

function goingDown(): UploadError {
  const message = 'The server is going down. Try again in a moment.'
  return new UploadError('shutting_down', message, { retryAfterS: 5 })
}

function onlyMethods(allowed: string): RequestHandler {
  return (req, res) => {
    res.set('Allow', allowed)
    throw new UploadError(
      'method_not_allowed',
      `${req.method} is not possible on ${req.path}. Possible are ${allowed}.`,
    )
  }
}

/** There is no delete route: clients of PicList ask for one, and are told so in the 404 that every other path gets. */
const notFound: RequestHandler = (req: Request) => {
  if (req.path === '/delete') {
    throw new UploadError(
      'not_found',
      'This server deletes nothing: there is no delete route. Remove the file at its destination.',
    )
  }
  throw new UploadError('not_found', `There is nothing at ${req.path}. Uploads go to POST /upload.`)
}
