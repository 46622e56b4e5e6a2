import { localPath, ownFile, secret, secretAddress, size, time } from '../options.ts'
import * as z from '../packages/zod.ts'
import { pictureSchema } from '../pictures/options.ts'
import { authSection, sourcesSection } from './access.ts'
import { isHostHeader, isListenHost } from './endpoint.ts'
import {
  configName,
  count,
  destinationName,
  flag,
  keyTemplate,
  list,
  noProxy,
  optional,
  proxyAddress,
  section,
  textThat,
  timeout,
  trustProxy,
  webAddress,
} from './values.ts'

// Everything is parsed once: compiling parsers for it costs more than it saves.
z.config({ jitless: true })

const DAY_MS = 24 * 60 * 60_000

const hook = z
  .strictObject({
    name: z.string().min(1).describe('Name of the hook, shown in messages and in the log.'),
    command: optional(
      z.array(z.string().min(1)).min(1),
      'Program to run and its arguments. No shell is involved.',
    ),
    webhook: optional(secretAddress(), 'URL to which the job is sent as JSON by POST.'),
    secret: optional(secret(), 'Secret that signs the webhook request with HMAC-SHA256.'),
    timeout: timeout('30s', 'Timeout of one run of the hook.'),
    required: flag(
      true,
      'Fail the upload with status 424 while this hook fails. If false, the upload succeeds, and the hook is retried in the background, 8 attempts in all.',
    ),
  })
  .refine(
    value => (value.command === undefined) !== (value.webhook === undefined),
    'needs either "command" or "webhook"',
  )

/** From the most severe level to the most verbose one. */
export const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const

/** Schema of the configuration file. The options below `providers.<type>.<configName>` are checked by the provider. */
export const configSchema = z.strictObject({
  $schema: optional(z.string(), 'URL or path of the JSON Schema, for editors. The server ignores it.'),
  server: section('Where the server listens.', {
    host: z
      .string()
      .min(1)
      .refine(
        host => host === '' || isListenHost(host),
        'must be an IP address, a hostname or the absolute path of a Unix socket, without http:// and without a port',
      )
      .default('127.0.0.1')
      .describe('IP address or hostname to listen on, or the absolute path of a Unix socket.'),
    port: count(36677, 'Port to listen on. 0 picks a free port.', 0, 65535),
    strictPort: flag(false, 'Fail if the port is in use. If false, the next ports are tried.'),
    socketMode: optional(
      z.string().regex(/^0?[0-7]{3}$/, 'must be three octal digits, such as "660"'),
      'Permissions of the Unix socket, as three octal digits, such as "660" for a reverse proxy in its group. Default: by the umask, usually only the user of this program.',
    ),
    key: optional(
      secret(),
      'Upload key that remote clients must send. Local clients need none, unless auth.loopbackExempt is false.',
    ),
    publicUrl: optional(
      webAddress,
      'URL at which clients reach this server, for example through a reverse proxy. It may have a path. Links to files that this server serves begin with it.',
    ),
    allowedHosts: list(
      textThat(
        isHostHeader,
        'must be a hostname as the Host header has it, such as "img.example.com" or "img.example.com:8443"',
      ),
      'Additional Host header values with which local clients need no upload key: "name", or "name:port" for one port.',
    ),
    trustProxy: list(
      trustProxy,
      'Reverse proxies whose X-Forwarded-For header is trusted: IP addresses, CIDR ranges, "loopback", "linklocal" or "uniquelocal".',
    ),
    watch: flag(true, 'Reload the configuration when its file changes. SIGHUP always reloads it.'),
  }),
  auth: authSection,
  sources: sourcesSection,
  network: section('Outbound connections to destinations, webhooks and issuers of tokens.', {
    proxy: proxyAddress()
      .default('environment')
      .describe(
        'Outbound proxy: a URL with http, https, socks5 or socks5h; "environment" (HTTPS_PROXY, HTTP_PROXY, ALL_PROXY, NO_PROXY); or "none".',
      ),
    noProxy: list(
      noProxy(),
      'Hosts that bypass the proxy: hostnames (subdomains included), IP addresses, CIDR ranges, or "*" for all. Each may end with ":port".',
    ),
    caFile: optional(
      ownFile(),
      'PEM file with additional CA certificates to trust for all outbound connections, for example of a TLS-intercepting proxy.',
    ),
  }),
  limits: section('Sizes, concurrency, timeouts and retries.', {
    fileSize: size().prefault('100MB').describe('Maximum size of one file.'),
    files: count(100, 'Maximum number of files in one request.'),
    jsonBody: size().prefault('16MB').describe('Maximum size of a JSON request body.'),
    memory: size()
      .prefault('64MB')
      .describe(
        'Memory shared by all request bodies in progress. What exceeds it is buffered on disk. In a container, at most an eighth of its memory beyond 96 MB.',
      ),
    perDestination: section('Uploads to one destination.', {
      concurrent: count(
        64,
        'Maximum number of requests whose files are stored at the same time. The same number of requests may be fetching remote URLs in addition.',
      ),
      queued: count(256, 'Maximum number of requests in the queue. Further requests get 503.', 0),
    }),
    bodyIdle: timeout('30s', 'Idle timeout of request bodies and of files that the server serves.'),
    destinationTimeout: timeout(
      '2m',
      'Timeout for storing one file at one destination, including retries and time in the queue. A fallback or mirror gets the same time again.',
    ),
    retries: count(
      3,
      'Number of retries after a transient failure, with exponential backoff, within destinationTimeout.',
      0,
    ),
  }),
  default: optional(
    destinationName,
    'Destination of requests that specify none: "provider" or "provider/configName". Required if there are several.',
  ),
  plugins: list(
    z.string().min(1),
    'Packages and files with additional providers, resolved from the folder of this file. Their code runs in the server.',
  ),
  providers: z
    .record(z.string(), z.record(configName, z.record(z.string(), z.unknown())))
    .default({})
    .describe(
      'Destinations, as providers.<type>.<configName>. Default: one that stores files in the data directory.',
    ),
  keyTemplate: keyTemplate.default('{Y}/{m}/{path}/{filename}-{sha256-8}{extname}'),
  images: optional(pictureSchema, 'Changes to images before they are stored. Default: none.'),
  finalization: section('Post-upload steps: what the server does after the files of a request are stored.', {
    keep: time(DAY_MS, Number.MAX_SAFE_INTEGER)
      .prefault('7d')
      .describe(
        'Retention of the records of finished upload jobs, at least "1d". Files and the upload history are not affected.',
      ),
    hooks: list(hook, 'Hooks to run after the files are stored, in this order.'),
  }),
  cleanup: section(
    'Deletion of expired files. What expires, and when, is the `expiry` of each destination.',
    { interval: timeout('10m', 'Interval between two deletions of expired files.') },
  ),
  database: z
    .strictObject({
      driver: z.enum(['sqlite', 'postgres']).default('sqlite').describe('Database for jobs and history.'),
      path: optional(
        localPath(),
        'Database file of the sqlite driver. Default: store.db in the data directory of the user.',
      ),
      url: optional(secret(), 'Connection URL of the postgres driver. Required for it.'),
    })
    .refine(({ driver, url }) => driver === 'sqlite' || url !== undefined, {
      path: ['driver'],
      message: 'is "postgres", which requires a connection URL in "database.url"',
    })
    .prefault({})
    .describe('The database for jobs and history.'),
  shutdown: section('Graceful shutdown.', {
    grace: timeout(
      '30s',
      'Graceful shutdown timeout: how long uploads in progress may take to finish. Then they are aborted. New requests are rejected after half of it.',
      0,
    ),
  }),
  log: section('The log on standard output.', {
    level: z.enum(LOG_LEVELS).default('info').describe('Minimum level of the lines that are logged.'),
  }),
  metrics: section('Metrics for Prometheus.', {
    enabled: flag(false, 'Serve metrics at /metrics.'),
    token: optional(
      secret(),
      'Token that scrapers on other machines must send as "Authorization: Bearer". Default: none, and only local clients get metrics.',
    ),
  }),
  page: section('The web uploader.', {
    history: flag(
      false,
      'Show clients with an upload key, and local clients, their own uploads: on the page and at GET /history.',
    ),
  }),
  compat: section('Compatibility with other clients.', {
    alwaysOk: flag(false, 'Respond to failed uploads with status 200. The body still says success: false.'),
  }),
})

export type Settings = z.output<typeof configSchema>
