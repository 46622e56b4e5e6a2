import * as z from '../packages/zod.ts'
import { readVersion } from '../version.ts'
import * as contract from './contract.ts'
import { OPTIONS, type RequestOption } from './options.ts'
import { ERROR_CODES, statusOf } from './status.ts'

type Json = Record<string, unknown>

export interface ApiFacts {
  /** Address of this server as the caller sees it, without a final slash. */
  readonly url: string
  /** `compat.alwaysOk`: failed uploads have status 200, too. */
  readonly alwaysOk: boolean
}

/** This server's API as OpenAPI 3.1, made from the schemas in contract.ts. */
export function describeApi({ url, alwaysOk }: ApiFacts): Json {
  const answers = uploadAnswers(alwaysOk)
  const put = { summary: 'Upload the body as one file', requestBody: binary, responses: answers, security }
  return {
    openapi: '3.1.1',
    info: {
      title: 'upload-server',
      version: readVersion(),
      summary: 'Takes files and answers with their links',
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url }],
    paths: {
      '/heartbeat': { get: heartbeat('get'), post: heartbeat('post') },
      '/': { get: page },
      '/upload': {
        get: page,
        post: {
          operationId: 'upload',
          summary: 'Upload files, paths, addresses or the clipboard',
          parameters: [...uploadQuery, idempotencyKey],
          requestBody: {
            description: 'No body, or an empty list, means the clipboard.',
            content: {
              'multipart/form-data': {
                schema: {
                  type: 'object',
                  description: 'Every part with a file name is a file, whatever its field is called.',
                  additionalProperties: { type: 'string', contentMediaType: 'application/octet-stream' },
                },
              },
              'application/json': { schema: ref('List') },
              ...binary.content,
            },
          },
          responses: answers,
          security,
        },
        put: { operationId: 'put', parameters: [...uploadQuery, idempotencyKey], ...put },
      },
      '/upload/{name}': {
        put: {
          operationId: 'putNamed',
          parameters: [inPath('name', 'Name of the file.'), ...uploadQuery, idempotencyKey],
          ...put,
        },
      },
      '/files/{configName}/{key}': {
        get: {
          summary: 'A file that a "local" destination with "serve" has stored',
          parameters: [
            inPath('configName', 'Name of the saved configuration.'),
            inPath('key', 'Path of the file; its slashes stay as they are.'),
          ],
          responses: {
            ...ok('The file, or a part of it by Range.', { '*/*': {} }),
            206: { description: 'A part of the file.', content: { '*/*': {} } },
            304: { description: 'The client has it already.' },
            ...failures,
          },
        },
      },
      '/links/{type}/{configName}/{key}': {
        get: {
          summary: 'A file of a private store, for destinations whose "link" is "redirect"',
          parameters: [
            inPath('type', 'Provider of the destination.'),
            inPath('configName', 'Name of the saved configuration.'),
            inPath('key', 'Path of the file; its slashes stay as they are.'),
          ],
          responses: {
            302: { description: 'A signed address that opens the file for a while.' },
            ...failures,
          },
          security,
        },
      },
      '/history': {
        get: {
          operationId: 'history',
          summary: 'What the caller itself uploaded lately, when the configuration has it shown',
          parameters: [
            inQuery('text', 'A part of the name or of the link, in capitals or not.'),
            inQuery('limit', 'Most entries, 1 to 100. Default: 20.'),
          ],
          responses: { ...ok('Newest first.', json(ref('History'))), ...failures },
          security,
        },
      },
      '/upload-server.sxcu': {
        get: {
          summary: 'A custom uploader for ShareX',
          parameters: parametersOf(Object.entries(OPTIONS).filter(([, { isForShareX }]) => isForShareX)),
          responses: { ...ok('The file; it never holds a key.', json({ type: 'object' })), ...failures },
        },
      },
      '/metrics': {
        get: {
          summary: 'Figures for Prometheus, when the configuration switches them on',
          responses: { ...ok('Text exposition format.', { 'text/plain': {} }), ...failures },
          security: [{ bearer: [] }, {}],
        },
      },
      '/openapi.json': {
        get: {
          summary: 'This document',
          responses: { ...ok('OpenAPI 3.1.', json({ type: 'object' })), ...failures },
        },
      },
    },
    components: {
      schemas: schemas(),
      securitySchemes: {
        bearer: { type: 'http', scheme: 'bearer' },
        header: { type: 'apiKey', in: 'header', name: 'X-Upload-Key' },
        query: { type: 'apiKey', in: 'query', name: 'key' },
      },
    },
  }
}

/** Programs on the server's own machine need none of them. */
const security = [{ bearer: [] }, { header: [] }, { query: [] }, {}]

const binary = {
  content: Object.fromEntries(
    ['application/octet-stream', 'image/*', 'video/*', 'audio/*'].map(type => [type, {}]),
  ),
}

const parametersOf = (options: readonly (readonly [string, RequestOption])[]) =>
  options.map(([name, { description }]) => inQuery(name, description))

const uploadQuery = parametersOf(Object.entries(OPTIONS))

const idempotencyKey = {
  name: 'Idempotency-Key',
  in: 'header',
  description: 'Repetitions with the same key get the first answer.',
  schema: { type: 'string', minLength: 1, maxLength: 255 },
}

const failures = { default: { description: 'A failure.', content: json(ref('Failure')) } }

const page = {
  summary: 'How to use this server',
  responses: { ...ok('A page.', { 'text/html': {} }), ...failures },
}

function uploadAnswers(alwaysOk: boolean): Json {
  const schema = { type: 'string' }
  const text = { 'text/plain': { schema }, 'text/markdown': { schema } }
  const success = alwaysOk ? { anyOf: ['Uploaded', 'UploadFailure', 'Pending'].map(ref) } : ref('Uploaded')
  const failed = { ...json(ref('UploadFailure')), ...text }
  const answers: Json = {
    200: { description: 'Every input was stored.', content: { ...json(success), ...text } },
    424: {
      description: 'Everything is stored; what follows failed.',
      content: { ...json(ref('Pending')), ...text },
    },
  }
  answers['default'] = { description: 'Another failure.', content: failed }
  for (const status of new Set(ERROR_CODES.map(statusOf))) {
    const codes = ERROR_CODES.filter(code => statusOf(code) === status)
    answers[status] = { description: codes.join(', '), content: failed }
  }
  return answers
}

function heartbeat(method: string): Json {
  return {
    operationId: `${method}Heartbeat`,
    summary: 'Whether the server is reachable',
    responses: { ...ok('It is.', json(ref('Alive'))), ...failures },
  }
}

function ok(description: string, content: Json): Json {
  return { 200: { description, content } }
}

function json(schema: Json): Json {
  return { 'application/json': { schema } }
}

function ref(name: string): Json {
  return { $ref: `#/components/schemas/${name}` }
}

function inQuery(name: string, description: string) {
  return { name, in: 'query', description, schema: { type: 'string' } }
}

function inPath(name: string, description: string) {
  return { ...inQuery(name, description), in: 'path', required: true }
}

function schemas(): Json {
  const registry = z.registry<{ id: string }>()
  for (const schema of Object.values(contract)) {
    const id = schema.meta()?.id
    if (id) registry.add(schema, { id })
  }
  const made = z.toJSONSchema(registry, { uri: id => `#/components/schemas/${id}` }).schemas
  return Object.fromEntries(Object.entries(made).map(([id, { $id, $schema, ...schema }]) => [id, schema]))
}
