import { secret } from '../options.ts'
import * as z from '../packages/zod.ts'
import { defineProvider } from './contract.ts'
import { createHost, type HostDescription, httpAddress, literal } from './shared/form-host/index.ts'
import { readTextOption } from './shared/picgo-options.ts'

const config = z.object({
  url: httpAddress().default('http://127.0.0.1:36677').describe('URL of the other server, without /upload.'),
  serverKey: secret().optional().describe('Upload key of the other server.'),
  picbed: z
    .string()
    .min(1)
    .optional()
    .describe('Provider to use on the other server. Default: its default destination.'),
  configName: z
    .string()
    .min(1)
    .optional()
    .describe('Name of the destination on the other server (PicGo: saved configuration).'),
  keyInQuery: z
    .boolean()
    .default(false)
    .describe(
      'Send the upload key in the URL (?key=) instead of a header. PicList needs this. URLs are often logged by proxies.',
    ),
})

/** Another server with the same API: upload-server, PicList or PicGo. */
export const piclist = defineProvider({
  type: 'piclist',
  about: {
    family: 'other',
    what: 'another upload-server, PicGo or PicList',
    testedAgainst: 'this server and PicGo 3.1.0',
    example: {
      home: { url: 'https://img.example.com', serverKey: 'HOME_KEY', picbed: 's3', configName: 'blog' },
      desk: { url: 'http://192.168.1.5:36677', serverKey: 'DESK_KEY', keyInQuery: true },
    },
    choices: [
      {
        label: 'Another upload-server, PicGo or PicList',
        asks: ['url', 'serverKey?'],
      },
    ],
  },
  config,
  open: (options, { http }) => createHost(describe(options), http),
  fromPicGo,
})

/** Describes the API. PicList returns `{"success":true,"result":[null]}` for a failed upload, so there is no value at the path. */
function describe(options: z.output<typeof config>): HostDescription {
  const { url, serverKey, picbed, configName, keyInQuery } = options
  const key = serverKey && '{secret:serverKey}'
  return {
    url: `${literal(url.replace(/\/(upload\/?)?$/, ''))}/upload`,
    // PicGo accepts no other field name, and names `picbed` only `uploader`.
    field: 'files',
    query: {
      picbed: picbed && literal(picbed),
      uploader: picbed && literal(picbed),
      configName: configName && literal(configName),
      ...(keyInQuery && { key }),
    },
    ...(!keyInQuery && { headers: { 'X-Upload-Key': key, 'X-PicGo-Secret': key } }),
    success: { at: 'success', is: [true] },
    resultUrl: 'result[0]',
    errorMessage: 'message',
    secrets: { serverKey },
  }
}

function fromPicGo(options: Record<string, unknown>) {
  const { host, port, picbed, configName } = options
  const serverKey = readTextOption(options['serverKey'])
  const note =
    'The upload key is sent in the URL because PicList requires it. Set "keyInQuery" to false if the other server is not PicList.'
  return {
    options: {
      url: `http://${readTextOption(host) ?? '127.0.0.1'}:${port || 36677}`,
      picbed: readTextOption(picbed),
      configName: readTextOption(configName),
      serverKey,
      ...(serverKey && { keyInQuery: true }),
      keyTemplate: '{filename}{extname}',
    },
    notes: serverKey ? [note] : [],
  }
}
