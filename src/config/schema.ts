import { localPath, ownFile, secret, secretAddress, size, time } from '../options.ts'
import * as z from '../packages/zod.ts'
import { pictureSchema } from '../pictures/options.ts'
import { authSection, sourcesSection } from './access.ts'
import { isHostHeader, isListenHost } from './endpoint.ts'
import {
  configName,
  count,
  destinationName,
  keyTemplate,
  noProxy,
  proxyAddress,
  section,
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
    command: z
      .array(z.string().min(1))
      .min(1)
      .optional()
      .describe('Program to run and its arguments. No shell is involved.'),
    webhook: secretAddress().optional().describe('URL to which the job is sent as JSON by POST.'),
    secret: secret().optional().describe('Secret that signs the webhook request with HMAC-SHA256.'),
    timeout: timeout('30s', 'Timeout of one run of the hook.'),
    required: z
      .boolean()
      .default(true)
      .describe(
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
  $schema: z
    .string()
    .optional()
    .describe('URL or path of the JSON Schema, for editors. The server ignores it.'),
  server: section(
    {
      host: z
        .string()
        .min(1)
        .refine(
          host => host === '' || isListenHost(host),
          'must be an IP address, a hostname or the absolute path of a Unix socket, without http:// and without a port',
        )
        .default('127.0.0.1')
        .describe('IP address or hostname to listen on, or the absolute path of a Unix socket.'),
      port: z
        .number()
        .int()
        .min(0)
        .max(65535)
        .default(36677)
        .describe('Port to listen on. 0 picks a free port.'),
      strictPort: z
        .boolean()
        .default(false)
        .describe('Fail if the port is in use. If false, the next ports are tried.'),
      socketMode: z
        .string()
        .regex(/^0?[0-7]{3}$/, 'must be three octal digits, such as "660"')
        .optional()
        .describe(
          'Permissions of the Unix socket, as three octal digits, such as "660" for a reverse proxy in its group. Default: by the umask, usually only the user of this program.',
        ),
      key: secret()
        .optional()
        .describe(
          'Upload key that remote clients must send. Local clients need none, unless auth.loopbackExempt is false.',
        ),
      publicUrl: webAddress
        .optional()
        .describe(
          'URL at which clients reach this server, for example through a reverse proxy. It may have a path. Links to files that this server serves begin with it.',
        ),
      allowedHosts: z
        .array(
          z
            .string()
            .refine(
              isHostHeader,
              'must be a hostname as the Host header has it, such as "img.example.com" or "img.example.com:8443"',
            ),
        )
        .default([])
        .describe(
          'Additional Host header values with which local clients need no upload key: "name", or "name:port" for one port.',
        ),
      trustProxy: z
        .array(trustProxy)
        .default([])
        .describe(
          'Reverse proxies whose X-Forwarded-For header is trusted: IP addresses, CIDR ranges, "loopback", "linklocal" or "uniquelocal".',
        ),
      watch: z
        .boolean()
        .default(true)
        .describe('Reload the configuration when its file changes. SIGHUP always reloads it.'),
    },
    'Where the server listens.',
  ),
  auth: authSection,
  sources: sourcesSection,
  network: section(
    {
      proxy: proxyAddress()
        .default('environment')
        .describe(
          'Outbound proxy: a URL with http, https, socks5 or socks5h; "environment" (HTTPS_PROXY, HTTP_PROXY, ALL_PROXY, NO_PROXY); or "none".',
        ),
      noProxy: z
        .array(noProxy())
        .default([])
        .describe(
          'Hosts that bypass the proxy: hostnames (subdomains included), suffixes ("*example.com"), IP addresses, CIDR ranges, "10.*", or "*" for all. Each may end with ":port".',
        ),
      caFile: ownFile()
        .optional()
        .describe(
          'PEM file with additional CA certificates to trust for all outbound connections, for example of a TLS-intercepting proxy.',
        ),
    },
    'Outbound connections to destinations, webhooks and issuers of tokens.',
  ),
  limits: section(
    {
      fileSize: size().prefault('100MB').describe('Maximum size of one file.'),
      files: count(100, 'Maximum number of files in one request.'),
      jsonBody: size().prefault('16MB').describe('Maximum size of a JSON request body.'),
      memory: size()
        .prefault('64MB')
        .describe(
          'Memory shared by all request bodies in progress. What exceeds it is buffered on disk. In a container, at most an eighth of its memory beyond 96 MB.',
        ),
      perDestination: section(
        {
          concurrent: count(
            64,
            'Maximum number of requests whose files are stored at the same time. The same number of requests may be fetching remote URLs in addition.',
          ),
          queued: count(256, 'Maximum number of requests in the queue. Further requests get 503.', 0),
        },
        'Uploads to one destination.',
      ),
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
    },
    'Sizes, concurrency, timeouts and retries.',
  ),
  default: destinationName
    .optional()
    .describe(
      'Destination of requests that specify none: "provider" or "provider/configName". Required if there are several.',
    ),
  plugins: z
    .array(z.string().min(1))
    .default([])
    .describe(
      'Packages and files with additional providers, resolved from the folder of this file. Their code runs in the server.',
    ),
  providers: z
    .record(z.string(), z.record(configName, z.record(z.string(), z.unknown())))
    .default({})
    .describe(
      'Destinations, as providers.<type>.<configName>. Default: one that stores files in the data directory.',
    ),
  keyTemplate: keyTemplate.default('{Y}/{m}/{path}/{filename}-{sha256-8}{extname}'),
  images: pictureSchema.optional().describe('Changes to images before they are stored. Default: none.'),
  finalization: section(
    {
      keep: time(DAY_MS, Number.MAX_SAFE_INTEGER)
        .prefault('7d')
        .describe(
          'Retention of the records of finished upload jobs, at least "1d". Files and the upload history are not affected.',
        ),
      hooks: z.array(hook).default([]).describe('Hooks to run after the files are stored, in this order.'),
    },
    'Post-upload steps: what the server does after the files of a request are stored.',
  ),
  cleanup: section(
    { interval: timeout('10m', 'Interval between two deletions of expired files.') },
    'Deletion of expired files. What expires, and when, is the `expiry` of each destination.',
  ),
  database: z
    .strictObject({
      driver: z.enum(['sqlite', 'postgres']).default('sqlite').describe('Database for jobs and history.'),
      path: localPath()
        .optional()
        .describe('Database file of the sqlite driver. Default: store.db in the data directory of the user.'),
      url: secret().optional().describe('Connection URL of the postgres driver. Required for it.'),
    })
    .refine(({ driver, url }) => driver === 'sqlite' || url !== undefined, {
      path: ['driver'],
      message: 'is "postgres", which requires a connection URL in "database.url"',
    })
    .prefault({})
    .describe('The database for jobs and history.'),
  shutdown: section(
    {
      grace: timeout(
        '30s',
        'Graceful shutdown timeout: how long uploads in progress may take to finish. Then they are aborted. New requests are rejected after half of it.',
        0,
      ),
    },
    'Graceful shutdown.',
  ),
  log: section(
    {
      level: z.enum(LOG_LEVELS).default('info').describe('Minimum level of the lines that are logged.'),
    },
    'The log on standard output.',
  ),
  metrics: section(
    {
      enabled: z.boolean().default(false).describe('Serve metrics at /metrics.'),
      token: secret()
        .optional()
        .describe(
          'Token that scrapers on other machines must send as "Authorization: Bearer". Default: none, and only local clients get metrics.',
        ),
    },
    'Metrics for Prometheus.',
  ),
  page: section(
    {
      history: z
        .boolean()
        .default(false)
        .describe(
          'Show clients with an upload key, and local clients, their own uploads: on the page and at GET /history.',
        ),
    },
    'The web uploader.',
  ),
  compat: section(
    {
      alwaysOk: z
        .boolean()
        .default(false)
        .describe('Respond to failed uploads with status 200. The body still says success: false.'),
    },
    'Compatibility with other clients.',
  ),
})

export type Settings = z.output<typeof configSchema>
