import { localPath, ownFile, secret, secretAddress } from '../options.ts'
import * as z from '../packages/zod.ts'
import { pictureSchema } from '../pictures/options.ts'
import { SOURCES } from '../uploader/input.ts'
import {
  configName,
  count,
  destinationName,
  keyTemplate,
  ms,
  noProxy,
  proxyAddress,
  section,
  size,
  trustProxy,
  webAddress,
} from './values.ts'

// Everything is parsed once: compiling parsers for it costs more than it saves.
z.config({ jitless: true })

const uploadKey = z.strictObject({
  name: z.string().min(1).describe('Stands in the log for the key.'),
  key: secret().describe('The secret itself.'),
  destinations: z.array(destinationName).optional().describe('What the key may use. Default: everything.'),
  sources: z
    .array(z.enum(SOURCES))
    .optional()
    .describe('What a request with this key may name. Default: form, url, and path when roots are set.'),
})

const hook = z
  .strictObject({
    name: z.string().min(1).describe('Stands in messages and in the log for the hook.'),
    command: z
      .array(z.string().min(1))
      .min(1)
      .optional()
      .describe('Program and arguments, started without a shell.'),
    webhook: secretAddress().optional().describe('Address that gets the job as JSON by POST.'),
    secret: secret().optional().describe('Signs the webhook with HMAC-SHA256.'),
    timeoutMs: ms(30_000, 'How long it may take.'),
    required: z
      .boolean()
      .default(true)
      .describe(
        'Whether an upload is not finished while it fails. Else it is tried again, and given up in the end.',
      ),
  })
  .refine(
    value => (value.command === undefined) !== (value.webhook === undefined),
    'needs either "command" or "webhook"',
  )

/** From the most important one on. */
export const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const

/** The configuration file. What stands below `providers.<type>.<name>` is checked by the provider. */
export const configSchema = z.strictObject({
  $schema: z.string().optional().describe('For editors; not read.'),
  server: section(
    {
      host: z
        .string()
        .min(1)
        .default('127.0.0.1')
        .describe('Address to listen on, or the absolute path of a unix socket.'),
      port: z
        .number()
        .int()
        .min(0)
        .max(65535)
        .default(36677)
        .describe('Port to listen on; 0 takes any free one.'),
      strictPort: z
        .boolean()
        .default(false)
        .describe('Fail when the port is taken instead of trying the next ones.'),
      workers: z
        .union([z.number().int().min(1).max(256), z.literal('auto')])
        .default(1)
        .describe('Processes that share the work; "auto": one for each processor core.'),
      key: secret().optional().describe('The upload key remote callers must send.'),
      publicUrl: webAddress
        .optional()
        .describe('Address under which clients reach this server; may have a path.'),
      allowedHosts: z
        .array(z.string().min(1))
        .default([])
        .describe('Further Host names under which loopback callers are exempt from the key.'),
      trustProxy: z
        .array(trustProxy)
        .default([])
        .describe(
          'Proxies whose X-Forwarded-For names the client: addresses, ranges, "loopback", "linklocal", "uniquelocal".',
        ),
      watch: z
        .boolean()
        .default(true)
        .describe('Take a changed configuration file without a new start. SIGHUP has it read in any case.'),
    },
    'The listener.',
  ),
  auth: section(
    {
      loopbackExempt: z.boolean().default(true).describe('Programs on this machine need no key.'),
      anonymous: z.boolean().default(false).describe('Anybody may upload without a key.'),
      allowedOrigins: z
        .array(z.string().min(1))
        .default([])
        .describe('Web origins that count as programs on this machine when they call from it.'),
      allowNullOrigin: z
        .boolean()
        .default(false)
        .describe('Let "Origin: null" pass; sandboxed web pages send it, too.'),
      maxFailures: count(20, 'Wrong keys from one address before it is refused; 0 never refuses.', 0),
      failureWindowMs: ms(60_000, 'How long wrong keys are counted and refused.'),
      keys: z
        .array(uploadKey)
        .default([])
        .describe('Further upload keys, each with a name and, when wanted, limits.'),
    },
    'Who may upload.',
  ),
  sources: section(
    {
      path: section(
        {
          enabled: z.boolean().default(true).describe('Whether paths may be named at all.'),
          roots: z
            .array(localPath())
            .default([])
            .describe('Directories below which callers with a key may name files.'),
        },
        'Files on this machine.',
      ),
      url: section(
        {
          enabled: z.boolean().default(true).describe('Whether addresses may be named at all.'),
          allowPrivate: z
            .boolean()
            .default(false)
            .describe('Let everybody name private, loopback, link-local and reserved addresses.'),
          timeoutMs: ms(30_000, 'How long a fetch may take, body included.'),
          proxy: proxyAddress()
            .default('none')
            .describe(
              'Proxy to fetch through: an address, "environment" or "none". Names are looked up and checked here before.',
            ),
        },
        'Files elsewhere, fetched by the server.',
      ),
      clipboard: section(
        { enabled: z.boolean().default(true).describe('Whether the clipboard may be asked for.') },
        'The clipboard of the session the server runs in.',
      ),
    },
    'What a request may name.',
  ),
  network: section(
    {
      proxy: proxyAddress()
        .default('environment')
        .describe(
          'Proxy to go through: an address that begins with http, https, socks5 or socks5h; "environment" (HTTPS_PROXY, HTTP_PROXY, ALL_PROXY, NO_PROXY); "none".',
        ),
      noProxy: z
        .array(noProxy())
        .default([])
        .describe(
          'What goes past it: names, with those below them; ends of names ("*example.com"); addresses; ranges; "10.*"; "*". Each may end with ":port".',
        ),
      caFile: ownFile()
        .optional()
        .describe(
          'File with the PEM certificates of an authority to trust everywhere beside the usual ones, as of a proxy that opens TLS.',
        ),
    },
    'Connections to destinations and webhooks.',
  ),
  limits: section(
    {
      fileSize: size().prefault('100MB').describe('Largest file. Bytes.'),
      files: count(100, 'Most files in one request.'),
      jsonBody: size().prefault('16MB').describe('Largest JSON body. Bytes.'),
      memory: size()
        .prefault('64MB')
        .describe(
          'Most that all files under way hold in memory; the rest waits on disk. As much for large JSON bodies. Bytes.',
        ),
      concurrentUploads: count(
        16,
        'Requests delivered at the same time, for each destination; as many more may fetch addresses.',
      ),
      waitingUploads: count(
        256,
        'Requests that wait beyond that, for each destination; the next gets 503.',
        0,
      ),
      bodyIdleMs: ms(30_000, 'How long a body may stall, of an upload or of a served file.'),
      deliveryTimeoutMs: ms(
        120_000,
        'How long one file may take to a destination: all attempts, and waiting for its turn there. As long again to a fallback or mirror.',
      ),
      retries: count(3, 'Further attempts after a delivery that failed in passing, while there is time.', 0),
    },
    'How much and how long.',
  ),
  default: destinationName
    .optional()
    .describe('Destination of requests that name none: "provider" or "provider/configName".'),
  plugins: z
    .array(z.string().min(1))
    .default([])
    .describe(
      'Packages and files with further providers, found from the folder of this file. Their code runs in the server.',
    ),
  providers: z
    .record(z.string(), z.record(configName, z.record(z.string(), z.unknown())))
    .default({})
    .describe('Saved configurations: providers.<type>.<configName>.'),
  keyTemplate: keyTemplate.default('{Y}/{m}/{path}/{filename}-{sha256-8}{extname}'),
  pictures: pictureSchema.optional().describe('What is done to pictures before they are stored.'),
  finalization: section(
    {
      keepDays: count(7, 'Days for which finished jobs are remembered.', 0),
      hooks: z.array(hook).default([]).describe('Run in this order after an upload is delivered.'),
    },
    'What follows the delivery.',
  ),
  expiry: section(
    { everyMs: ms(10 * 60_000, 'Between two looks for files that are to go.') },
    'Files that go again; see `expiry` of a destination.',
  ),
  store: section(
    {
      driver: z.enum(['sqlite', 'postgres']).default('sqlite').describe('Where jobs and history are kept.'),
      path: localPath()
        .optional()
        .describe("File of the sqlite driver. Default: below the user's data directory."),
      url: secret().optional().describe('Connection address of the postgres driver.'),
    },
    'Jobs and history.',
  ),
  shutdown: section({ graceMs: ms(30_000, 'How long running uploads may take to finish.', 0) }, 'Stopping.'),
  log: section(
    {
      level: z.enum(LOG_LEVELS).default('info').describe('Least important line that is written.'),
    },
    'The log on standard output.',
  ),
  metrics: section(
    {
      enabled: z.boolean().default(false).describe('Whether there is /metrics.'),
      token: secret()
        .optional()
        .describe('What scrapers on other machines send as "Authorization: Bearer"; none: they get nothing.'),
    },
    'Figures for Prometheus.',
  ),
  page: section(
    {
      history: z
        .boolean()
        .default(false)
        .describe(
          'Whether callers with a key, and programs on this machine, are shown what they uploaded themselves: on the page and by GET /history.',
        ),
    },
    'The page for browsers.',
  ),
  compat: section(
    { alwaysOk: z.boolean().default(false).describe('Answer failed uploads with 200.') },
    'For clients that need it.',
  ),
})

export type Settings = z.output<typeof configSchema>
