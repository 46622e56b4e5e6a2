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
    paths: { ...healthPaths, ...uploadPaths(), ...storedPaths, ...otherPaths },
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

const parametersOf = (options: readonly (readonly [string, RequestOption])[]) =>
  options.map(([name, { description }]) => inQuery(name, description))

const uploadQuery = parametersOf(Object.entries(OPTIONS))

const idempotencyKey = {
  name: 'Idempotency-Key',
  in: 'header',
  description: 'Makes the request safe to repeat: a repeated request gets the first response.',
  schema: { type: 'string', minLength: 1, maxLength: 255 },
}

const failures = { default: { description: 'Failure.', content: json(ref('Failure')) } }

const page = {
  summary: 'Upload page for browsers',
  responses: { ...ok('HTML page.', { 'text/html': {} }), ...failures },
}

const healthPaths = {
  '/heartbeat': { get: heartbeat('get'), post: heartbeat('post') },
  '/health': {
    get: {
      operationId: 'health',
      summary: 'Health check, as one client spells it',
      responses: { ...ok('The server is up.', json(ref('Healthy'))), ...failures },
    },
  },
  '/ready': {
    get: {
      operationId: 'ready',
      summary: 'Readiness check, for load balancers',
      responses: {
        ...ok('The server accepts uploads.', json(ref('Ready'))),
        503: {
          description:
            'The server is shutting down, or its database or the folder of its default destination does not work.',
          content: json(ref('Failure')),
        },
        ...failures,
      },
    },
  },
}

function uploadPaths(): Json {
  const answers = uploadAnswers()
  const put = {
    summary: 'Upload the request body as one file',
    requestBody: binary,
    responses: answers,
    security,
  }
  return {
    '/': { get: page },
    '/page/me': {
      get: {
        summary: 'What the visitor of the upload page may do',
        responses: {
          ...ok('For the script of the page. Its members may change.', json({ type: 'object' })),
          ...failures,
        },
      },
    },
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
        responses: answers,
        security,
      },
      put: { operationId: 'put', parameters: [...uploadQuery, idempotencyKey], ...put },
    },
    '/upload/known': {
      post: {
        operationId: 'known',
        summary: 'Find files that this client has stored at the destination before',
        parameters: uploadQuery,
        requestBody: {
          content: json({
            type: 'object',
            required: ['files'],
            properties: {
              files: {
                type: 'array',
                maxItems: 1000,
                items: {
                  type: 'object',
                  required: ['name'],
                  properties: {
                    name: { type: 'string' },
                    sha256: { type: 'string', pattern: '^[0-9a-f]{64}$' },
                    size: { type: 'integer', minimum: 0 },
                  },
                },
              },
            },
          }),
        },
        responses: {
          ...ok(
            'For each file, in order, its link, or that it must be sent.',
            json({
              type: 'object',
              required: ['success', 'files'],
              properties: {
                success: { const: true },
                files: {
                  type: 'array',
                  items: {
                    type: 'object',
                    properties: { url: { type: 'string' }, send: { const: true } },
                  },
                },
              },
            }),
          ),
          ...failures,
        },
        security,
      },
      // A file of this name.
      put: { operationId: 'putKnown', parameters: [...uploadQuery, idempotencyKey], ...put },
    },
    '/upload/{name}': {
      put: {
        operationId: 'putNamed',
        parameters: [inPath('name', 'File name.'), ...uploadQuery, idempotencyKey],
        ...put,
      },
    },
  }
}

const storedPaths = {
  '/files/{configName}/{key}': {
    get: {
      summary: 'File of a "local" destination with "serve"',
      parameters: [
        inPath('configName', 'Name of the destination within its provider.'),
        inPath('key', 'Object key. Its slashes are not encoded.'),
      ],
      responses: {
        ...ok('The file.', { '*/*': {} }),
        206: { description: 'The requested range of the file.', content: { '*/*': {} } },
        304: { description: 'The file has not changed.' },
        ...failures,
      },
    },
  },
  '/links/{type}/{configName}/{key}': {
    get: {
      summary: 'File in a private bucket, for destinations with "link": "redirect"',
      parameters: [
        inPath('type', 'Provider of the destination.'),
        inPath('configName', 'Name of the destination within its provider.'),
        inPath('key', 'Object key. Its slashes are not encoded.'),
      ],
      responses: {
        302: { description: 'Redirect to a presigned URL of the file.' },
        ...failures,
      },
      security,
    },
  },
  '/history': {
    get: {
      operationId: 'history',
      summary: 'Recent uploads of this client, if "page.history" is true',
      parameters: [
        inQuery('text', 'Part of the name or of the URL, case-insensitive.'),
        inQuery('limit', 'Maximum number of entries, 1 to 100. Default: 20.'),
      ],
      responses: { ...ok('Newest first.', json(ref('History'))), ...failures },
      security,
    },
  },
}

const otherPaths = {
  '/upload-server.sxcu': {
    get: {
      summary: 'Custom uploader for ShareX',
      parameters: parametersOf(Object.entries(OPTIONS).filter(([, { isForShareX }]) => isForShareX)),
      responses: {
        ...ok('The file. It never contains an upload key.', json({ type: 'object' })),
        ...failures,
      },
    },
  },
  '/metrics': {
    get: {
      summary: 'Metrics for Prometheus, if enabled',
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

function heartbeat(method: string): Json {
  return {
    operationId: `${method}Heartbeat`,
    summary: 'Health check',
    responses: { ...ok('The server is up.', json(ref('Alive'))), ...failures },
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
