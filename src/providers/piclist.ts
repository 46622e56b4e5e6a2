import { secret, text, webUrl } from '../options.ts'
import * as z from '../packages/zod.ts'
import { formHost } from './shared/form-host.ts'

/** Another server with the same API: upload-server, PicList or PicGo. */
export const piclist = formHost({
  type: 'piclist',
  about: {
    family: 'other',
    what: 'another upload-server, PicGo or PicList',
    testedAgainst: 'this server and PicGo 3.1.0',
    choices: [{ label: 'Another upload-server, PicGo or PicList', asks: ['url', 'serverKey?'] }],
  },
  options: {
    url: webUrl().default('http://127.0.0.1:36677').describe('URL of the other server, without /upload.'),
    serverKey: secret().optional().describe('Upload key of the other server.'),
    picbed: text()
      .optional()
      .describe('Provider to use on the other server. Default: its default destination.'),
    configName: text()
      .optional()
      .describe('Name of the destination on the other server (PicGo: saved configuration).'),
    keyInQuery: z
      .boolean()
      .default(false)
      .describe(
        'Send the upload key in the URL (?key=) instead of a header. PicList needs this. URLs are often logged by proxies.',
      ),
  },
  form({ url, serverKey, picbed, configName, keyInQuery }) {
    const key = keyInQuery ? undefined : serverKey
    return {
      url: `${url.replace(/\/(upload\/?)?$/, '')}/upload`,
      // PicGo names `picbed` only `uploader`, and accepts no other field name for the file.
      query: { picbed, uploader: picbed, configName, key: keyInQuery ? serverKey : undefined },
      headers: { 'x-upload-key': key, 'x-picgo-secret': key },
      file: 'files',
    }
  },
  // PicList returns `{"success":true,"result":[null]}` for a failed upload, so there is no value at the path.
  answer: { success: ['success', true], url: 'result[0]', error: 'message' },
  picgo(old) {
    const serverKey = old.text('serverKey')
    if (serverKey)
      old.note(
        'The upload key is sent in the URL because PicList requires it. Set "keyInQuery" to false if the other server is not PicList.',
      )
    return {
      url: `http://${old.text('host') ?? '127.0.0.1'}:${old.text('port') ?? 36677}`,
      picbed: old.text('picbed'),
      configName: old.text('configName'),
      serverKey,
      keyInQuery: serverKey && true,
    }
  },
})
