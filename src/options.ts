import { isIP } from 'node:net'
import * as z from './packages/zod.ts'

/** `file`: a path to what belongs to the server alone, such as a key. `proxy`: an address that may hold a password. */
export type Mark = 'secret' | 'path' | 'file' | 'proxy'

const marks = z.registry<{ is: Mark }>()
const deprecations = z.registry<{ instead: string; until: string }>()

/** A string option that must never be seen again: masked in the log, in messages and in `config show`. */
export function secret(): z.ZodString {
  return z.string().min(1).register(marks, { is: 'secret' })
}

/** Whether a host can exist: an IP address, or a name as DNS has them. */
export function isPossibleHost(host: string): boolean {
  const name = host.replace(/^\[(.*)\]$/, '$1').replace(/(?<=.)\.$/, '')
  if (isIP(name) !== 0) return true
  const labels = name.split('.')
  const isLabel = (label: string) =>
    label.length <= 63 && /^[\p{L}\p{N}_](?:[\p{L}\p{M}\p{N}_-]*[\p{L}\p{M}\p{N}_])?$/u.test(label)
  return name.length <= 253 && labels.every(isLabel) && !/^\d+$/.test(labels.at(-1) ?? '')
}

const hostOf = (address: string) => (URL.canParse(address) ? new URL(address).hostname : 'localhost')

/** An http or https URL whose host can exist. */
export function webUrl(): z.ZodURL {
  return z
    .url({ protocol: /^https?$/, error: 'must be an http or https URL' })
    .refine(address => isPossibleHost(hostOf(address)), 'has an invalid hostname')
}

/** An http or https address that is a secret by itself, as those are that chat services give for webhooks. */
export function secretAddress(): z.ZodURL {
  return webUrl().register(marks, { is: 'secret' })
}

const path = () =>
  z
    .string()
    .min(1)
    .refine(text => !text.includes('\0'), 'contains a NUL character')

/** A path on this machine: `~/` is the home directory, relative ones start at the configuration file's directory. */
export function localPath(): z.ZodString {
  return path().register(marks, { is: 'path' })
}

/** As `localPath`, for a file of the server itself that nobody may upload: keys, certificates, descriptions. */
export function ownFile(): z.ZodString {
  return path().register(marks, { is: 'file' })
}

/**
 * Has an option go on to work while its use is told of at the start, and editors strike it through.
 *
 * @param instead what to do in place of it, as in `write "server.watch"`
 * @param until the major version that removes it
 */
export function deprecated<T extends z.ZodType>(schema: T, instead: string, until: string): T {
  deprecations.add(schema, { instead, until })
  return schema
}

/**
 * A sentence for each deprecated option that is used.
 *
 * @param value as it was written, without defaults
 */
export function findDeprecated(schema: z.ZodType, value: unknown, path = ''): string[] {
  const inner = unwrap(schema)
  const found = deprecations.get(schema) ?? deprecations.get(inner)
  if (found) return [`${path} is deprecated: ${found.instead} instead. Version ${found.until} removes it`]
  if (Array.isArray(value)) {
    if (!(inner instanceof z.ZodArray)) return []
    return value.flatMap((item, index) => findDeprecated(elementOf(inner), item, `${path}[${index}]`))
  }
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, item]) => {
    const member = memberOf(inner, name)
    return member ? findDeprecated(member, item, path ? `${path}.${name}` : name) : []
  })
}

/** JSON Schema 2020-12 of what people write. */
export function toJsonSchema(schema: z.ZodType): object {
  return z.toJSONSchema(schema, {
    io: 'input',
    unrepresentable: 'any',
    override({ zodSchema, jsonSchema }) {
      const found = deprecations.get(classic(zodSchema))
      if (!found) return
      jsonSchema.deprecated = true
      jsonSchema.description =
        `Deprecated: ${found.instead} instead. Version ${found.until} removes it. ${jsonSchema.description ?? ''}`.trim()
    },
  })
}

/** The address of a proxy, or a word in its place, whose password must never be seen again. */
export function proxySetting(isValid: (text: string) => boolean): z.ZodString {
  const error =
    'must be "environment", "none", or a URL such as "http://user:password@proxy.example.com:3128"; it may also begin with https, socks5 or socks5h'
  return z.string().refine(isValid, error).register(marks, { is: 'proxy' })
}

/** Changes every marked string of a configuration, found by walking the schema beside the value. */
export function mapMarked<T>(schema: z.ZodType, value: T, change: (value: string, is: Mark) => string): T
export function mapMarked(
  schema: z.ZodType,
  value: unknown,
  change: (value: string, is: Mark) => string,
): unknown {
  const mark = marks.get(schema)
  if (mark && typeof value === 'string') return change(value, mark.is)
  const inner = unwrap(schema)
  if (inner !== schema) return mapMarked(inner, value, change)
  if (schema instanceof z.ZodUnion) {
    return schema.options.reduce<unknown>((v, option) => mapMarked(classic(option), v, change), value)
  }
  if (Array.isArray(value)) {
    const element = schema instanceof z.ZodArray ? elementOf(schema) : undefined
    return element ? value.map(item => mapMarked(element, item, change)) : value
  }
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, item]) => {
      const member = memberOf(schema, name)
      return [name, member ? mapMarked(member, item, change) : item]
    }),
  )
}

/** The configuration with its paths, relative ones and `~` included, as `resolve` makes them absolute. */
export function mapPaths<T>(schema: z.ZodType, value: T, resolve: (path: string) => string): T {
  return mapMarked(schema, value, (text, is) => (is === 'path' || is === 'file' ? resolve(text) : text))
}

/** Every string of a configuration that is marked so. */
export function collectMarked(schema: z.ZodType, value: unknown, mark: Mark): string[] {
  const found: string[] = []
  mapMarked(schema, value, (text, is) => {
    if (is === mark) found.push(text)
    return text
  })
  return found
}

/** Zod types what is inside of a schema as one of any of its libraries; all of ours are of this one. */
const classic = (schema: z.ZodArray['element']) => schema as z.ZodType

export const elementOf = ({ element }: z.ZodArray): z.ZodType => classic(element)

/** The schema under `optional()`, `default()` and the like. */
export function unwrap(schema: z.ZodType): z.ZodType {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodDefault || schema instanceof z.ZodPrefault) {
    return unwrap(classic(schema.unwrap()))
  }
  if (schema instanceof z.ZodPipe) return unwrap(classic(schema.in))
  return schema
}

/** The schema of a member of an object or a record. */
export function memberOf(schema: z.ZodType, name: string): z.ZodType | undefined {
  const inner = unwrap(schema)
  if (inner instanceof z.ZodObject) return Object.hasOwn(inner.shape, name) ? inner.shape[name] : undefined
  if (inner instanceof z.ZodRecord) return classic(inner.valueType)
  return undefined
}
