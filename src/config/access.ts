import { localPath, secret } from '../options.ts'
import * as z from '../packages/zod.ts'
import { readTime } from '../times.ts'
import { KEYLESS } from '../uploader/input.ts'
import { isOrigin } from './endpoint.ts'
import { permissions } from './permissions.ts'
import { reverseProxy } from './proxy-users.ts'
import { tokenList } from './tokens.ts'
import { count, flag, list, optional, proxyAddress, section, textThat, timeout } from './values.ts'

/** An RFC 3339 timestamp, as milliseconds since the epoch. */
const expiryDate = textThat(
  text => readTime(text) !== undefined,
  'must be an RFC 3339 time such as "2027-01-31T18:00:00Z"',
).transform(text => readTime(text) ?? 0)

/** Names by which the history tells the clients of `server.key`, of reverse proxies and tokens, and those without a key. */
const isReserved = (name: string) =>
  name === 'server' || KEYLESS.includes(name) || /^(?:proxy:|token )/.test(name)

const uploadKey = z.strictObject({
  name: z
    .string()
    .min(1)
    .refine(
      name => !isReserved(name),
      'is reserved for other clients: must not be "server" or a name of clients without an upload key, or begin with "proxy:" or "token "',
    )
    .describe('Name of the upload key, shown in the log and in the history instead of the secret.'),
  key: secret().describe('Secret that clients send.'),
  ...permissions,
  expires: optional(
    expiryDate,
    'When the upload key becomes invalid: an RFC 3339 time such as "2027-01-31T18:00:00Z".',
  ),
  addedByProxy: optional(
    z.boolean(),
    'A reverse proxy adds this key after its own authentication. Web pages of other sites, whose requests a browser authenticates too, are then rejected (CSRF).',
  ),
})

/** `auth` of the configuration: upload keys, and who needs none. */
export const authSection = section('Who may upload.', {
  loopbackExempt: flag(
    true,
    'Let local clients (programs on the server\'s machine) upload without an upload key. Set it to false if a reverse proxy, a tunnel or "ssh -R" runs on the same machine.',
  ),
  anonymous: flag(false, 'Let anyone upload without an upload key.'),
  allowedOrigins: list(
    textThat(
      isOrigin,
      'must be an origin as browsers send it, such as "https://notes.example.com": without a path, a wildcard or a default port',
    ),
    "Web origins trusted like local clients: in a browser on the server's machine, their pages may upload without an upload key. Pages of other origins need a key.",
  ),
  allowNullOrigin: flag(
    false,
    'Treat requests with "Origin: null" as local. Any website can send that origin from a sandboxed frame.',
  ),
  maxFailures: count(
    20,
    'Number of wrong upload keys within 1 minute from one IP address (IPv6: /64 network) before its requests are rejected with 429. 0 disables the limit.',
    0,
  ),
  reverseProxy,
  tokens: tokenList,
  keys: list(
    uploadKey,
    'Additional upload keys, each with a name. A key can be limited to destinations and sources.',
  ),
})

/** `sources` of the configuration: where the server may read files from. */
export const sourcesSection = section('Where the server reads files from, besides the request itself.', {
  path: section("Files on the server's machine.", {
    enabled: flag(true, "Accept file paths on the server's machine as upload sources."),
    roots: list(
      localPath(),
      'Allowed directories: clients with an upload key may upload files below them by path. Local clients may upload any file that the server can read.',
    ),
  }),
  url: section('Remote URLs, fetched by the server.', {
    enabled: flag(true, 'Accept URLs and fetch them.'),
    allowPrivate: flag(
      false,
      'Disable SSRF protection for all clients: URLs may then lead to private IP addresses. Local clients may always use private and loopback addresses.',
    ),
    timeout: timeout('30s', 'Timeout of one fetch, including the body.'),
    proxy: proxyAddress()
      .default('none')
      .describe('Outbound proxy for fetching remote URLs: a proxy URL, "environment" or "none".'),
  }),
  clipboard: section('The clipboard of the desktop session that the server runs in.', {
    enabled: flag(true, "Accept empty upload requests, which upload the image in the server's clipboard."),
  }),
})
