import { readVersion } from '../package.ts'
import * as z from '../packages/zod.ts'
import * as contract from './contract.ts'
import { OPTIONS, type RequestOption } from './options.ts'
import { ERROR_CODES, statusOf } from './status.ts'

type Json = Record<string, unknown>

/** The API as OpenAPI 3.1, made from the schemas in contract.ts. The build writes it to `dist/openapi.json`. */
export function describeApi(): Json {
  return {
    openapi: '3.1.1',
    info: {
      title: 'upload-server',
      version: readVersion(),
      summary: 'Uploads files and returns their links',
      license: { name: 'MIT', identifier: 'MIT' },
    },
    // Relative to the document, so that it is the same behind every proxy.
    servers: [{ url: '.' }],
    paths: { ...otherPaths, ...uploadPaths() },
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

/** Local clients need none of them. */
const security = [{ bearer: [] }, { header: [] }, { query: [] }, {}]

const binary = {
  content: Object.fromEntries(
    ['application/octet-stream', 'image/*', 'video/*', 'audio/*'].map(type => [type, {}]),
  ),
}

const idempotencyKey = {
  name: 'Idempotency-Key',
  in: 'header',
  description: 'Makes the request safe to repeat: a repeated request gets the first response.',
  schema: { type: 'string', minLength: 1, maxLength: 255 },
}

const uploadQuery = parametersOf(Object.entries(OPTIONS))
const failures = { default: { description: 'Failure.', content: json(ref('Failure')) } }
const configName = inPath('configName', 'Name of the destination within its provider.')
const key = inPath('key', 'Object key. Its slashes are not encoded.')

/** An operation without a body. Its failures are the same as everywhere. */
const reads = (summary: string, responses: Json, more: Json = {}) => ({
  ...{ summary, ...more },
  responses: { ...responses, ...failures },
})

const page = reads('Upload page for browsers', ok('HTML page.', { 'text/html': {} }))
const heartbeat = (method: string) =>
  reads('Health check', ok('The server is up.', json(ref('Alive'))), { operationId: `${method}Heartbeat` })

const otherPaths: Json = {
  '/heartbeat': { get: heartbeat('get'), post: heartbeat('post') },
  '/health': {
    get: reads('Health check, as one client spells it', ok('The server is up.', json(ref('Healthy'))), {
      operationId: 'health',
    }),
  },
  '/ready': {
    get: reads(
      'Readiness check, for load balancers',
      {
        ...ok('The server accepts uploads.', json(ref('Ready'))),
        503: {
          description:
            'The server is shutting down, or its database or the folder of its default destination does not work.',
          content: json(ref('Failure')),
        },
      },
      { operationId: 'ready' },
    ),
  },
  '/': { get: page },
  '/page/me': {
    get: reads(
      'What the visitor of the upload page may do',
      ok('For the script of the page. Its members may change.', json({ type: 'object' })),
    ),
  },
  '/files/{configName}/{key}': {
    get: reads(
      'File of a "local" destination with "serve"',
      {
        ...ok('The file.', { '*/*': {} }),
        206: { description: 'The requested range of the file.', content: { '*/*': {} } },
        304: { description: 'The file has not changed.' },
      },
      { parameters: [configName, key] },
    ),
  },
  '/links/{type}/{configName}/{key}': {
    get: reads(
      'File in a private bucket, for destinations with "link": "redirect"',
      { 302: { description: 'Redirect to a presigned URL of the file.' } },
      { parameters: [inPath('type', 'Provider of the destination.'), configName, key], security },
    ),
  },
  '/history': {
    get: reads(
      'Recent uploads of this client, if "page.history" is true',
      ok('Newest first.', json(ref('History'))),
      {
        operationId: 'history',
        parameters: [
          inQuery('text', 'Part of the name or of the URL, case-insensitive.'),
          inQuery('limit', 'Maximum number of entries, 1 to 100. Default: 20.'),
        ],
        security,
      },
    ),
  },
  '/upload-server.sxcu': {
    get: reads(
      'Custom uploader for ShareX',
      ok('The file. It never contains an upload key.', json({ type: 'object' })),
      { parameters: parametersOf(Object.entries(OPTIONS).filter(([, { isForShareX }]) => isForShareX)) },
    ),
  },
  '/metrics': {
    get: reads('Metrics for Prometheus, if enabled', ok('Text exposition format.', { 'text/plain': {} }), {
      security: [{ bearer: [] }, {}],
    }),
  },
  '/openapi.json': { get: reads('This document', ok('OpenAPI 3.1.', json({ type: 'object' }))) },
}

function uploadPaths(): Json {
  const responses = uploadAnswers()
  const put = (operationId: string, ...more: object[]) => ({
    operationId,
    summary: 'Upload the request body as one file',
    parameters: [...more, ...uploadQuery, idempotencyKey],
    requestBody: binary,
    ...{ responses, security },
  })
  return {
    '/upload': {
      get: page,
      post: {
        operationId: 'upload',
        summary: 'Upload files, file paths, URLs or the clipboard',
        parameters: [...uploadQuery, idempotencyKey],
        requestBody: {
          description: 'Without a body, or with an empty list, the image in the clipboard is uploaded.',
          content: {
            'multipart/form-data': {
              schema: {
                type: 'object',
                description: 'Every part with a file name is a file, whatever its field name.',
                additionalProperties: { type: 'string', contentMediaType: 'application/octet-stream' },
              },
            },
            'application/json': { schema: ref('List') },
            ...binary.content,
          },
        },
        ...{ responses, security },
      },
      put: put('put'),
    },
    '/upload/known': {
      post: {
        operationId: 'known',
        summary: 'Find files that this client has stored at the destination before',
        parameters: uploadQuery,
        requestBody: { content: json(ref('Asked')) },
        responses: {
          ...ok('For each file, in order, its link, or that it must be sent.', json(ref('Known'))),
          ...failures,
        },
        security,
      },
      put: put('putKnown'), // a file of this name
    },
    '/upload/{name}': { put: put('putNamed', inPath('name', 'File name.')) },
  }
}

function uploadAnswers(): Json {
  const schema = { type: 'string' }
  const text = { 'text/plain': { schema }, 'text/markdown': { schema } }
  const any = { anyOf: ['Uploaded', 'UploadFailure', 'Pending'].map(ref) }
  const failed = { ...json(ref('UploadFailure')), ...text }
  const answers: Json = {
    200: {
      description: 'Every input was stored. With ?status=200 or "compat.alwaysOk", any result.',
      content: { ...json(any), ...text },
    },
    424: {
      description: 'Every file is stored, but a post-upload step failed.',
      content: { ...json(ref('Pending')), ...text },
    },
  }
  answers['default'] = { description: 'Any other failure.', content: failed }
  for (const status of new Set(ERROR_CODES.map(statusOf))) {
    const codes = ERROR_CODES.filter(code => statusOf(code) === status)
    answers[status] = { description: codes.join(', '), content: failed }
  }
  return answers
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

function parametersOf(options: readonly (readonly [string, RequestOption])[]) {
  return options.map(([name, { description }]) => inQuery(name, description))
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
