import { BlockList, isIP } from 'node:net'
import { messageOf } from '../errors.ts'
import { parseProxy } from '../http/proxy/address.ts'
import { isNoProxy } from '../http/proxy/no-proxy.ts'
import { proxySetting, webUrl } from '../options.ts'
import * as z from '../packages/zod.ts'
import { parseKeyTemplate } from '../payload/object-key.ts'
import { readDuration } from '../times.ts'

/** Longest delay of a timer in Node. A longer one fires at once. */
const LONGEST_MS = 2 ** 31 - 1

/** A time in milliseconds. 0 is invalid unless `min` allows it, because a limit of 0 would end everything at once. */
export const ms = (value: number, what: string, min = 1) =>
  z.number().int().min(min).max(LONGEST_MS).default(value).describe(`${what} Milliseconds.`)

/** A whole number. */
export const count = (value: number, what: string, min = 1) =>
  z.number().int().min(min).default(value).describe(what)

/** A section of options that all have defaults, so that the section may be omitted. */
export function section<S extends z.ZodRawShape>(shape: S, what: string) {
  return z
    .strictObject(shape)
    .prefault({} as z.input<z.ZodObject<S, z.$strict>>) // all may be missing, as the types of `S` don't tell
    .describe(what)
}

/** Parsed while the configuration is checked, so that an error shows at startup and not at the first upload. */
export const keyTemplate = z
  .string()
  .superRefine((template, context) => {
    try {
      parseKeyTemplate(template)
    } catch (error) {
      context.addIssue({ code: 'custom', message: messageOf(error) })
    }
  })
  .describe('Template of object keys: folders and name of a stored file, made of text and placeholders.')

export const destinationName = z
  .string()
  .regex(/^[^/]+(?:\/[^/].*)?$/, 'must be a destination, written "provider" or "provider/configName"')

/** Name of a destination. It becomes part of links, from which browsers remove "." and "..". */
export const configName = z
  .string()
  .refine(
    name => name.trim() !== '' && name !== '.' && name !== '..' && name.isWellFormed(),
    'must be text other than "." and ".."',
  )

export const trustProxy = z
  .string()
  .refine(
    isProxy,
    'must be an IP address, a CIDR range such as "10.0.0.0/8", "loopback", "linklocal" or "uniquelocal"',
  )
  .refine(
    value => !isProxy(value) || !coversAllAddresses(value),
    'trusts every address, so any client could forge X-Forwarded-For. Name your proxies only, such as "10.0.0.0/8"',
  )

/** Express compares an IPv4 address with an IPv6 range as `::ffff:a.b.c.d`, so an IPv6 range can contain all of IPv4. */
function coversAllAddresses(range: string): boolean {
  const [address = '', bits] = range.split('/')
  if (bits === undefined || isIP(address) !== 6) return Number(bits) === 0
  if (Number(bits) > 96) return false
  const list = new BlockList()
  list.addSubnet(address, Number(bits), 'ipv6')
  return list.check('::ffff:0.0.0.0', 'ipv6')
}

/** What Express accepts for "trust proxy": no zone ids. */
function isProxy(value: string): boolean {
  const [, address = '', bits] = /^([^/]*)(?:\/(\d{1,3}))?$/.exec(value) ?? []
  const family = isIP(address)
  if (address.includes('%')) return false
  if (family === 0) return ['loopback', 'linklocal', 'uniquelocal'].includes(value)
  return bits === undefined || Number(bits) <= (family === 4 ? 32 : 128)
}

/** A URL that paths are appended to. */
export const webAddress = webUrl()
  .refine(value => !/[?#]/.test(value), 'must not have a query or a fragment')
  .refine(
    value => !hasCredentials(value),
    'must not contain a user name or a password, because links are public',
  )

function hasCredentials(address: string): boolean {
  const { username, password } = URL.canParse(address) ? new URL(address) : { username: '', password: '' }
  return username !== '' || password !== ''
}

/** A time such as `"90s"`, `"12h"` or `"30d"`, in milliseconds. */
export function duration() {
  const error = 'must be a time above 0, such as "90m", "12h" or "30d"'
  return z
    .string({ error })
    .refine(text => readDuration(text) !== undefined, error)
    .transform(text => readDuration(text) ?? 0)
}

const UNITS: Record<string, number> = { '': 1, K: 1024, M: 1024 ** 2, G: 1024 ** 3 }

const SIZE = /^(\d+(?:\.\d+)?)\s*([KMG]?)i?B?$/i

/** A host that bypasses the proxy, as in `NO_PROXY`. */
export const noProxy = () =>
  z
    .string()
    .refine(
      isNoProxy,
      'must be a hostname, an IP address, a CIDR range or "*", without http://. It may end with ":port"',
    )

/** `environment`, `none`, or the URL of a proxy. */
export const proxyAddress = () =>
  proxySetting(text => ['environment', 'none'].includes(text) || parseProxy(text) !== undefined)

/** A number of bytes, or a string such as `"100MB"`; KB is 1024 bytes. At least one byte. */
export function size() {
  const error = 'must be a number of bytes above 0, or a string such as "100MB", "512KB" or "2GB"'
  return z
    .union([z.number().int(error), z.string()], { error })
    .refine(value => toBytes(value) >= 1, error)
    .transform(toBytes)
}

function toBytes(value: number | string): number {
  if (typeof value === 'number') return value
  const [, digits, unit = ''] = SIZE.exec(value.trim()) ?? []
  return Math.round(Number(digits) * (UNITS[unit.toUpperCase()] ?? 1))
}
