import { parseRange } from '../ip-ranges.ts'
import { keysOf } from '../members.ts'
import { secret } from '../options.ts'
import * as z from '../packages/zod.ts'
import { permissions } from './permissions.ts'
import { flag, optional, textThat } from './values.ts'

/** The header in which each authenticating reverse proxy names the person. Sources: docs/guides/sign-in.md. */
const PRESETS = {
  authelia: 'remote-user',
  authentik: 'x-authentik-username',
  'oauth2-proxy': 'x-forwarded-user',
  'oauth2-proxy-auth-request': 'x-auth-request-user',
  tailscale: 'tailscale-user-login',
} as const

/** Headers in which clients send upload keys and tokens. */
const KEY_HEADERS = /^(?:authorization|x-upload-key|x-picgo-secret)$/i

/** Headers with a meaning of their own: of HTTP, of browsers, of reverse proxies, and of this server. */
const TAKEN =
  /^(?:host|(?:accept|access-control|content|if|proxy|sec)(?:-.*)?|cache-control|connection|cookie|date|expect|forwarded|idempotency-key|keep-alive|origin|pragma|range|referer|te|traceparent|trailer|transfer-encoding|upgrade|user-agent|via|x-file-name|x-forwarded-(?:for|host|port|proto)|x-real-ip|x-request-id)$/i

const isFree = (name: string) => !TAKEN.test(name) && !KEY_HEADERS.test(name)
const TAKEN_MESSAGE = 'must not be a header with a meaning of its own'

const anyHeader = z
  .string()
  .regex(/^[A-Za-z0-9-]{1,100}$/, 'must be the name of a header, made of letters, digits and hyphens')

/** Name of a header that a reverse proxy adds. */
export const headerName = anyHeader.refine(isFree, TAKEN_MESSAGE)

/** Name of a header in which a reverse proxy sends a token. */
export const tokenHeader = anyHeader.refine(isFree, {
  error: ({ input }) =>
    KEY_HEADERS.test(String(input))
      ? 'is a header in which tokens are sent by default. Leave it out'
      : TAKEN_MESSAGE,
})

const peer = textThat(
  value => value === 'unix' || parseRange(value) !== undefined,
  'must be an IP address, a CIDR range such as "172.20.0.0/24", or "unix"',
)

/** `auth.reverseProxy` of the configuration. */
export const reverseProxy = optional(
  z
    .strictObject({
      from: z
        .array(peer)
        .min(1)
        .describe(
          'IP addresses of the reverse proxy, as the server sees them, or "unix" for the Unix socket of "server.host". A CIDR range requires secretHeader.',
        ),
      preset: optional(
        z.enum(keysOf(PRESETS)),
        'Preset for a known authenticating proxy. Sets the default of userHeader.',
      ),
      userHeader: optional(
        headerName,
        'Header in which the reverse proxy names the person. Required without a preset.',
      ),
      secretHeader: optional(
        z.strictObject({
          name: headerName.describe('Name of the header.'),
          value: secret().describe(
            'Secret that the reverse proxy sends in this header, for example from "openssl rand -hex 24".',
          ),
        }),
        'Header with a secret that proves that the reverse proxy sent the request.',
      ),
      requireKey: flag(
        false,
        'Require an upload key as well from users whom the reverse proxy names. Its destinations, sources and quota then apply, too.',
      ),
      ...permissions,
    })
    .superRefine((proxy, context) => {
      const report = (path: string, message: string) =>
        context.addIssue({ code: 'custom', path: [path], message })
      if (proxy.preset === undefined && proxy.userHeader === undefined)
        report(
          'userHeader',
          'is missing. Set it to the header in which the reverse proxy names the person, or set preset',
        )
      if (proxy.secretHeader === undefined && proxy.from.some(one => parseRange(one)?.isSingle === false))
        report(
          'from',
          'has a range, so every host in it could name people. Name single IP addresses, or set secretHeader',
        )
      if (proxy.secretHeader?.name.toLowerCase() === userHeaderOf(proxy))
        report('secretHeader', 'must be another header than userHeader')
    }),
  'Authenticating reverse proxy that tells the server in a header who sends a request.',
)

/** The header with the name of the person, in lower case. */
export function userHeaderOf({
  preset,
  userHeader,
}: {
  readonly preset?: keyof typeof PRESETS | undefined
  readonly userHeader?: string | undefined
}): string {
  return (userHeader ?? (preset && PRESETS[preset]) ?? '').toLowerCase()
}
