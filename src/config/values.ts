import { parseProxy } from '../http/proxy/address.ts'
import { isNoProxy } from '../http/proxy/no-proxy.ts'
import { inRanges, parseRange } from '../ip-ranges.ts'
import { proxySetting, time, webUrl } from '../options.ts'
import * as z from '../packages/zod.ts'
import { defectOf } from '../payload/object-key.ts'

/** A time with a default. It is above 0 unless `leastMs` is 0. */
export const timeout = (standard: string, what: string, leastMs = 1) =>
  time(leastMs).prefault(standard).describe(what)

/** A whole number. */
export const count = (value: number, what: string, min = 1, max = Number.MAX_SAFE_INTEGER) =>
  z.number().int().min(min).max(max).default(value).describe(what)

/** A boolean. */
export const flag = (value: boolean, what: string) => z.boolean().default(value).describe(what)

/** An option that may be missing. */
export const optional = <S extends z.ZodType>(schema: S, what: string) => schema.optional().describe(what)

/** A list that is empty by default. */
export const list = <S extends z.ZodType>(item: S, what: string) => z.array(item).default([]).describe(what)

/** Text that a function accepts, or else the message. */
export const textThat = (isValid: (text: string) => boolean, message: string) =>
  z.string().refine(isValid, message)

/** A section of options that all have defaults, so that the section may be omitted. */
export function section<S extends z.ZodRawShape>(what: string, shape: S) {
  return z
    .strictObject(shape)
    .prefault({} as z.input<z.ZodObject<S, z.$strict>>) // all may be missing, as the types of `S` don't tell
    .describe(what)
}

/** Parsed while the configuration is checked, so that an error shows at startup and not at the first upload. */
export const keyTemplate = z
  .string()
  .superRefine((template, context) => {
    const message = defectOf(template)
    if (message !== undefined) context.addIssue({ code: 'custom', message })
  })
  .describe('Template of object keys: folders and name of a stored file, made of text and placeholders.')

export const destinationName = z
  .string()
  .regex(/^[^/]+(?:\/[^/].*)?$/, 'must be a destination, written "provider" or "provider/configName"')

/** Name of a destination. It becomes part of links, from which browsers remove "." and "..". */
export const configName = textThat(
  name => name.trim() !== '' && name !== '.' && name !== '..' && name.isWellFormed(),
  'must be text other than "." and ".."',
)

export const trustProxy = textThat(
  isProxy,
  'must be an IP address, a CIDR range such as "10.0.0.0/8", "loopback", "linklocal" or "uniquelocal"',
).refine(
  value => !isProxy(value) || !coversAllAddresses(value),
  'trusts every address, so any client could forge X-Forwarded-For. Name your proxies only, such as "10.0.0.0/8"',
)

/** Express compares an IPv4 address with an IPv6 range as `::ffff:a.b.c.d`, so an IPv6 range can contain all of IPv4. */
function coversAllAddresses(text: string): boolean {
  const range = parseRange(text)
  if (range?.family !== 'ipv6') return range?.bits === 0
  return range.bits <= 96 && inRanges([range])('::ffff:0.0.0.0')
}

/** What Express accepts for "trust proxy". */
function isProxy(value: string): boolean {
  return ['loopback', 'linklocal', 'uniquelocal'].includes(value) || parseRange(value) !== undefined
}

/** A URL that paths are appended to. */
export const webAddress = webUrl()
  .refine(value => !/[?#]/.test(value), 'must not have a query or a fragment')
  .refine(
    value => !hasCredentials(value),
    'must not contain a user name or a password, because links are public',
  )
  .refine(
    value => !URL.canParse(value) || !['0.0.0.0', '[::]'].includes(new URL(value).hostname),
    'must have a host that clients can connect to, not 0.0.0.0 or [::], on which a server only listens',
  )

function hasCredentials(address: string): boolean {
  const { username, password } = URL.canParse(address) ? new URL(address) : { username: '', password: '' }
  return username !== '' || password !== ''
}

/** A host that bypasses the proxy, as in `NO_PROXY`. */
export const noProxy = () =>
  textThat(
    isNoProxy,
    'must be a hostname, an IP address, a CIDR range or "*", without http://. It may end with ":port"',
  )

/** `environment`, `none`, or the URL of a proxy. */
export const proxyAddress = () =>
  proxySetting(text => ['environment', 'none'].includes(text) || parseProxy(text) !== undefined)
