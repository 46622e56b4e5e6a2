import { BlockList, isIP } from 'node:net'
import { parseProxy } from '../http/proxy/address.ts'
import { isNoProxy } from '../http/proxy/no-proxy.ts'
import { proxySetting } from '../options.ts'
import * as z from '../packages/zod.ts'
import { parseKeyTemplate } from '../payload/object-key.ts'
import { readDuration } from '../uploader/expires.ts'

/** Longest time a timer of Node takes; with more it goes off at once. */
const LONGEST_MS = 2 ** 31 - 1

/** A time in milliseconds. Nought is taken only where `min` says so: a limit of nought would end everything. */
export const ms = (value: number, what: string, min = 1) =>
  z.number().int().min(min).max(LONGEST_MS).default(value).describe(`${what} Milliseconds.`)

/** A whole number of things. */
export const count = (value: number, what: string, min = 1) =>
  z.number().int().min(min).default(value).describe(what)

/** A section whose members all have defaults may be left out. */
export function section<S extends z.ZodRawShape>(shape: S, what: string) {
  return z
    .strictObject(shape)
    .prefault({} as z.input<z.ZodObject<S, z.$strict>>)
    .describe(what)
}

/** Checked by reading it, so that a mistake in it shows at the start and not at the first upload. */
export const keyTemplate = z
  .string()
  .superRefine((template, context) => {
    try {
      parseKeyTemplate(template)
    } catch (error) {
      context.addIssue({ code: 'custom', message: (error as Error).message })
    }
  })
  .describe('Where an upload is stored at its destination, made of text and placeholders.')

export const destinationName = z
  .string()
  .regex(/^[^/]+(?:\/[^/].*)?$/, 'a destination is written "provider" or "provider/configName"')

/** It is a part of links: a browser would take `..` out of them. */
export const configName = z
  .string()
  .refine(
    name => name.trim() !== '' && name !== '.' && name !== '..' && name.isWellFormed(),
    'must be text, and neither "." nor ".."',
  )

export const trustProxy = z
  .string()
  .refine(
    isProxy,
    'is no address, no range such as "10.0.0.0/8", and none of "loopback", "linklocal", "uniquelocal"',
  )
  .refine(
    value => !isProxy(value) || !isEverybody(value),
    'is every address there is: whoever sends X-Forwarded-For would choose its own. Name your proxies, such as "10.0.0.0/8"',
  )

/** Express compares an IPv4 address with a range of IPv6 as `::ffff:a.b.c.d`, so that such a range may hold all of them. */
function isEverybody(range: string): boolean {
  const [address = '', bits] = range.split('/')
  if (bits === undefined || isIP(address) !== 6) return Number(bits) === 0
  if (Number(bits) > 96) return false
  const list = new BlockList()
  list.addSubnet(address, Number(bits), 'ipv6')
  return list.check('::ffff:0.0.0.0', 'ipv6')
}

/** What Express takes for "trust proxy", which knows no zones of addresses, and ranges of all addresses; it refuses these. */
function isProxy(value: string): boolean {
  const [, address = '', bits] = /^([^/]*)(?:\/(\d{1,3}))?$/.exec(value) ?? []
  const family = isIP(address)
  if (address.includes('%')) return false
  if (family === 0) return ['loopback', 'linklocal', 'uniquelocal'].includes(value)
  return bits === undefined || Number(bits) <= (family === 4 ? 32 : 128)
}

/** An address that something is appended to. */
export const webAddress = z
  .url({ protocol: /^https?$/, error: 'must be an http or https address' })
  .refine(value => !/[?#]/.test(value), 'must have neither a query nor a fragment')
  .refine(value => !hasCredentials(value), 'must hold no user name and no password: everybody reads links')

function hasCredentials(address: string): boolean {
  const { username, password } = URL.canParse(address) ? new URL(address) : { username: '', password: '' }
  return username !== '' || password !== ''
}

/** A time such as `"90m"`, `"12h"` or `"30d"`, in milliseconds. */
export function duration() {
  const error = 'must be a time such as "90m", "12h" or "30d", and more than nothing'
  return z
    .string({ error })
    .refine(text => readDuration(text) !== undefined, error)
    .transform(text => readDuration(text) ?? 0)
}

const UNITS: Record<string, number> = { '': 1, K: 1024, M: 1024 ** 2, G: 1024 ** 3 }

const SIZE = /^(\d+(?:\.\d+)?)\s*([KMG]?)i?B?$/i

/** What goes past a proxy, as `NO_PROXY` is written. */
export const noProxy = () =>
  z
    .string()
    .refine(
      isNoProxy,
      'must be a name, an address, a range or "*", with or without ":port" and without http://',
    )

/** `environment`, `none`, or the address of a proxy. */
export const proxyAddress = () =>
  proxySetting(text => ['environment', 'none'].includes(text) || parseProxy(text) !== undefined)

/** A number of bytes, or a string such as `"100MB"`; KB is 1024 bytes. At least one byte. */
export function size() {
  const error =
    'must be a number of bytes or a string such as "100MB", "512KB" or "2GB", and more than nothing'
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
