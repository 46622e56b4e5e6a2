import { ownFile, secret, text } from '../../options.ts'
import * as z from '../../packages/zod.ts'

const texts = () => z.record(z.string(), z.string()).optional()

export const config = z.object({
  url: text()
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
  field: text().default('file').describe('Name of the form field that holds the file.'),
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
    .union([text(), z.array(text()).min(1)])
    .default('{response}')
    .describe(
      'Where the response contains the URL of the file: a JSON path such as data.url, or a text with placeholders such as {json:data.url}, {xml:/a/b}, {regex:…|1} or {header:Location}. In a list, the first entry with a value is used. Default: the whole response is the URL.',
    ),
  deleteUrl: text().optional().describe('Where the response contains the URL that deletes the file.'),
  errorMessage: z
    .union([text(), z.array(text()).min(1)])
    .optional()
    .describe('Where the response contains the error message. Default: its first 256 characters.'),
  success: z
    .strictObject({
      at: text().describe('Where the response contains the value to compare, such as the JSON path status.'),
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

export type HttpOptions = z.output<typeof config>

/** What describes a host: the options, or what a ShareX file has of them. */
export type HostDescription = Omit<z.input<typeof config>, 'sxcu'>
