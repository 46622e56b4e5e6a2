import { isDeepStrictEqual } from 'node:util'
import { messageOf } from '../../errors.ts'
import { ownFile, secret } from '../../options.ts'
import * as z from '../../packages/zod.ts'
import { defineProvider } from '../contract.ts'
import { sendForm } from '../shared/form-host/index.ts'
import { findOpenCredential } from './credentials.ts'
import { compileHost, type HostDescription } from './description.ts'
import { picgo } from './picgo.ts'
import { inWordsOfSxcu, readSxcu } from './sxcu.ts'

const texts = () => z.record(z.string(), z.string()).optional()
const place = () => z.string().min(1)

const config = z.object({
  url: z
    .string()
    .min(1)
    .optional()
    .describe(
      'URL that files are sent to. Required unless "sxcu" is set. Placeholders such as {filename} are replaced in this and the following options.',
    ),
  method: z.enum(['POST', 'PUT', 'PATCH']).default('POST').describe('HTTP method of the request.'),
  body: z
    .enum(['multipart', 'raw'])
    .default('multipart')
    .describe(
      'Format of the request body. "multipart": a form that contains the file. "raw": only the bytes of the file.',
    ),
  field: z.string().min(1).default('file').describe('Name of the form field that holds the file.'),
  fields: texts().describe('Additional form fields, sent before the file.'),
  query: texts().describe('Query parameters to add to the URL.'),
  headers: texts().describe(
    "Headers of the request. Headers that depend on the body, such as Content-Length, can't be set.",
  ),
  secrets: z
    .record(z.string().regex(/^[\w.-]+$/, 'must be letters, digits, ".", "_" and "-"'), secret())
    .optional()
    .describe(
      'Credentials under names of your choice, used as {secret:NAME}. Only these values are masked in logs, messages and `config show`.',
    ),
  resultUrl: z
    .union([place(), z.array(place()).min(1)])
    .default('{response}')
    .describe(
      'Where the response contains the URL of the file: a JSON path such as data.url, or a text with placeholders such as {json:data.url}, {xml:/a/b}, {regex:…|1} or {header:Location}. In a list, the first entry with a value is used. Default: the whole response is the URL.',
    ),
  deleteUrl: place().optional().describe('Where the response contains the URL that deletes the file.'),
  errorMessage: z
    .union([place(), z.array(place()).min(1)])
    .optional()
    .describe('Where the response contains the error message. Default: its first 256 characters.'),
  success: z
    .strictObject({
      at: place().describe('Where the response contains the value to compare, such as the JSON path status.'),
      is: z
        .array(z.union([z.string(), z.number(), z.boolean()]))
        .min(1)
        .describe('Values that indicate success.'),
    })
    .optional()
    .describe('Treat a response as a failure unless it contains one of these values.'),
  statuses: z
    .array(z.int().min(200).max(399))
    .min(1)
    .optional()
    .describe(
      'HTTP status codes that indicate success. Default: 200 to 299, and redirects if "resultUrl" uses the Location header.',
    ),
  sxcu: ownFile()
    .optional()
    .describe(
      'Path of a ShareX custom uploader file (.sxcu). It replaces all options above, which must not be set with it.',
    ),
})

type Options = z.output<typeof config>

/** Any host that accepts a file in one HTTP request and returns its URL. */
export const http = defineProvider({
  type: 'http',
  about: {
    family: 'other',
    what: 'any HTTP upload API; reads ShareX `.sxcu` files',
    testedAgainst: 'httpbin and PHP',
    choices: [
      {
        label: 'Any other image host',
        hint: 'configured by a ShareX .sxcu file or by options',
        asks: ['sxcu?', 'url?'],
      },
    ],
  },
  config,
  validate,
  open(options, { http }) {
    const { namesFiles, describe } = compileHost(descriptionOf(options))
    return {
      traits: { namesFiles },
      put: (object, signal) => sendForm(describe(object), object, http, signal),
    }
  },
  picgo,
})

function descriptionOf({ url = '', sxcu, ...rest }: Options): HostDescription {
  return sxcu === undefined ? { url, ...rest } : readSxcu(sxcu)
}

function validate(options: Options): string | undefined {
  const { url, sxcu, headers, fields, query } = options
  if (sxcu !== undefined) {
    const alone = new Map<string, unknown>(Object.entries(config.parse({ sxcu })))
    const isReplaced = ([name, value]: [string, unknown]) => !isDeepStrictEqual(value, alone.get(name))
    const other = Object.entries(options).find(isReplaced)?.[0]
    return other === undefined ? validateSxcu(sxcu) : `Set "sxcu" or "${other}", not both.`
  }
  if (url === undefined) return 'Set "url", or set "sxcu" to the file of a ShareX custom uploader.'
  const open = findOpenCredential(url, [headers, fields, query])
  if (open !== undefined)
    return `Move the value of "${open}" to "secrets" and write {secret:NAME} instead, so that it is masked.`
  return findFault(descriptionOf(options))
}

function findFault(description: HostDescription): string | undefined {
  try {
    compileHost(description)
    return undefined
  } catch (error) {
    return messageOf(error)
  }
}

function validateSxcu(path: string): string | undefined {
  try {
    const fault = findFault(readSxcu(path))
    return fault && `The file of "sxcu" can't be used: ${inWordsOfSxcu(fault)}`
  } catch (error) {
    return `The file of "sxcu" ${messageOf(error)}`
  }
}
