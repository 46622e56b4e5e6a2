import Ajv2020, { type ValidateFunction } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import { expect } from 'vitest'
import { describeApi } from '../../src/routes/openapi.ts'
import { ERROR_CODES } from '../../src/routes/status.ts'

/** One answer of this server. */
export interface Observed {
  readonly method: string
  /** As it was asked for. */
  readonly target: string
  readonly status: number
  readonly contentType: string | null | undefined
  readonly body: string
}

interface Operation {
  readonly responses: Record<string, { readonly content?: Record<string, { readonly schema?: object }> }>
}

const api = describeApi()

const ajv = new Ajv2020.default({ strict: false, allErrors: true })
addFormats.default(ajv)
ajv.addSchema(api, 'api')

/**
 * Holds an answer to the published description: its status, its type and its body. What is no operation there must be a
 * failure of the general kind.
 */
export function expectDescribed(observed: Observed): void {
  const { method, target, status, body } = observed
  const type = observed.contentType?.split(';')[0] ?? ''
  const what = `${method} ${target} answered ${status} ${body.slice(0, 500)}`
  const found = findOperation(api['paths'] as Record<string, object>, method, target)
  if (!found) {
    if (type === 'application/json' && status >= 400 && body !== '')
      expectValid('api#/components/schemas/Failure', body, what)
    return
  }
  const { responses } = found.operation
  const name = responses[status] ? String(status) : 'default'
  if (status < 400) expect(Object.keys(responses), what).toContain(name)
  const content = responses[name]?.content ?? {}
  const known = content[type] ? type : '*/*'
  if (method === 'HEAD' || body === '') return
  expect(Object.keys(content), `${what}: its type is ${type}`).toContain(known)
  if (type !== 'application/json' || known === '*/*') return
  const pointer = ['paths', found.path, found.method, 'responses', name, 'content', type, 'schema']
  expectValid(`api#/${pointer.map(encodePointer).join('/')}`, body, what)
}

function findOperation(paths: Record<string, object>, method: string, target: string) {
  const path = target
    .replace(/^https?:\/\/[^/?]*/i, '')
    .replace(/[?#].*$/s, '')
    .replace(/\/+/g, '/')
    .replace(/(?<=.)\/$/, '')
  const name = (method === 'HEAD' ? 'GET' : method).toLowerCase()
  for (const [template, operations] of Object.entries(paths)) {
    const pattern = template
      .replace(/[.]/g, '\\.')
      .replace('{key}', '.+')
      .replace(/\{\w+\}/g, '[^/]+')
    const operation = (operations as Record<string, Operation>)[name]
    if (operation && new RegExp(`^${pattern}$`).test(path)) return { path: template, method: name, operation }
  }
  return undefined
}

function encodePointer(text: string): string {
  return encodeURIComponent(text.replaceAll('~', '~0').replaceAll('/', '~1'))
}

function expectValid(schema: string, body: string, what: string): void {
  const validate = ajv.getSchema(schema) as ValidateFunction | undefined
  if (!validate) throw new Error(`There is no schema at ${schema}.`)
  const parsed = JSON.parse(body)
  validate(parsed)
  expect(validate.errors ?? [], what).toEqual([])
  // The published list of codes is open, for clients. This version has these.
  for (const { code } of [parsed, ...(parsed.errors ?? [])])
    if (code !== undefined) expect(ERROR_CODES, what).toContain(code)
}
