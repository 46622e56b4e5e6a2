import { httpOptions } from '../../http/client.ts'
import { ownFile, secret } from '../../options.ts'
import * as z from '../../packages/zod.ts'
import { defineProvider } from '../contract.ts'
import { findOpenCredential } from '../shared/form-host/credentials.ts'
import { createHost, findFault, type HostDescription } from '../shared/form-host/index.ts'
import { fromPicGo } from './picgo.ts'
import { inWordsOfSxcu, readSxcu } from './sxcu.ts'

const texts = () => z.record(z.string(), z.string()).optional()
const place = () => z.string().min(1)

const config = z.object({
  url: z
    .string()
    .min(1)
    .optional()
    .describe(
      'Address files are sent to, needed unless there is "sxcu". Placeholders such as {filename} are filled in, here and below.',
    ),
  method: z.enum(['POST', 'PUT', 'PATCH']).default('POST').describe('Method of the request.'),
  body: z
    .enum(['multipart', 'raw'])
    .default('multipart')
    .describe('"multipart": a form with the file in it. "raw": the bytes of the file alone.'),
  field: z.string().min(1).default('file').describe('Form field of the file.'),
  fields: texts().describe('Further form fields, sent before the file.'),
  query: texts().describe('Parameters that are added to the address.'),
  headers: texts().describe("Headers of the request. Those that follow from the body can't be set."),
  secrets: z
    .record(z.string().regex(/^[\w.-]+$/, 'must be letters, digits, ".", "_" and "-"'), secret())
    .optional()
    .describe('Credentials by a name of your choice, for {secret:NAME}. Only these are masked everywhere.'),
  resultUrl: z
    .union([place(), z.array(place()).min(1)])
    .default('{response}')
    .describe(
      'Where the address of the file stands in the answer: a JSON path such as data.url, or a text with placeholders such as {json:data.url}, {xml:/a/b}, {regex:…|1}, {header:Location}. Of several the first that holds something. Default: the answer is the address.',
    ),
  deleteUrl: place().optional().describe('Where the address that removes the file stands in the answer.'),
  errorMessage: z
    .union([place(), z.array(place()).min(1)])
    .optional()
    .describe('Where the answer says what went wrong. Default: its first 256 characters are shown.'),
  success: z
    .strictObject({
      at: place().describe('A place in the answer.'),
      is: z
        .array(z.union([z.string(), z.number(), z.boolean()]))
        .min(1)
        .describe('Values of success.'),
    })
    .optional()
    .describe('Count an answer as a failure unless one of these values stands at that place.'),
  statuses: z
    .array(z.int().min(200).max(399))
    .min(1)
    .optional()
    .describe('Statuses of success. Default: 200 to 299, and redirects when the address is in Location.'),
  sxcu: ownFile()
    .optional()
    .describe('File of a ShareX custom uploader, which then says everything that the options above say.'),
  ...httpOptions,
})

type Options = z.output<typeof config>

/** Any host that takes a file in one HTTP request and answers with its address. */
export const http = defineProvider({
  type: 'http',
  about: {
    family: 'other',
    what: "any host that takes a file over HTTP; reads ShareX's `.sxcu`",
    testedAgainst: 'httpbin and PHP',
    example: {
      album: {
        url: 'https://img.example.com/api/upload',
        field: 'image',
        fields: { album: 'holidays' },
        headers: { Authorization: 'Bearer {secret:token}' },
        secrets: { token: 'IMG_TOKEN' },
        success: { at: 'status', is: ['ok'] },
        resultUrl: 'data.url',
        deleteUrl: 'data.delete_url',
        errorMessage: 'error.message',
        keyTemplate: '{filename}{extname}',
      },
      store: {
        method: 'PUT',
        body: 'raw',
        url: 'https://files.example.com/{key}',
        headers: { Authorization: 'Basic {base64:{secret:user}:{secret:password}}' },
        secrets: { user: 'me', password: 'STORE_PASSWORD' },
        resultUrl: 'https://files.example.com/{key}',
      },
    },
    choices: [
      {
        label: 'Any other host',
        hint: 'described by a ShareX .sxcu file, or by options',
        asks: ['sxcu?', 'url?'],
      },
    ],
  },
  config,
  validate,
  open: (options, deps) => createHost(describe(options), options, deps),
  fromPicGo,
})

function describe({ url = '', sxcu, ...rest }: Options): HostDescription {
  return sxcu === undefined ? { url, ...rest } : readSxcu(sxcu)
}

function validate(options: Options): string | undefined {
  const { url, sxcu, headers, fields, query, secrets, deleteUrl, errorMessage, success } = options
  if (sxcu !== undefined) {
    const others = { url, headers, fields, query, secrets, deleteUrl, errorMessage, success }
    const other = Object.entries(others).find(([, value]) => value !== undefined)?.[0]
    return other === undefined ? validateSxcu(sxcu) : `Give "sxcu" or "${other}", not both.`
  }
  if (url === undefined) return 'Give a "url", or the file of a ShareX custom uploader as "sxcu".'
  const open = findOpenCredential(url, [headers, fields, query])
  if (open !== undefined)
    return `Move the value of "${open}" to "secrets" and write {secret:NAME} in its place: there it is masked.`
  return findFault(describe(options))
}

function validateSxcu(path: string): string | undefined {
  try {
    const fault = findFault(readSxcu(path))
    return fault && `The file of "sxcu" can't be used: ${inWordsOfSxcu(fault)}`
  } catch (error) {
    return `The file of "sxcu" ${(error as Error).message}`
  }
}
