import { createHttpClient, httpOptions } from '../../http/client.ts'
import { secret } from '../../options.ts'
import * as z from '../../packages/zod.ts'
import { defineProvider, type ProviderDeps, type Target } from '../contract.ts'
import { joinUrl, urlPrefix } from '../shared/public-url.ts'
import { type Access, createContainer } from './container.ts'
import { probeContainer, putBlob } from './put-blob.ts'
import { createReadToken } from './sign.ts'

const TEN_YEARS_S = 10 * 365 * 86_400

/** Text for a header: what Node refuses there would fail at the first upload only. */
const header = () =>
  z.string().regex(/^[\x21-\x7e]+(?: [\x21-\x7e]+)*$/, 'must be printable ASCII characters')

const config = z.object({
  account: z
    .string()
    .regex(/^[a-z0-9]{3,24}$/, 'must be the name of a storage account: 3 to 24 lower-case letters and digits')
    .describe('Name of the storage account.'),
  container: z
    .string()
    .regex(/^(\$web|(?=.{3,63}$)[a-z0-9]+(-[a-z0-9]+)*)$/, 'must be the name of a container, or "$web"')
    .describe('Name of the container, which has to be there. "$web" is the static web site.'),
  accountKey: secret().optional().describe('One of the two keys of the account.'),
  sasToken: secret()
    .optional()
    .describe('Shared access signature instead of the key: "sv=…&sig=…", to read, create, write and delete.'),
  endpoint: urlPrefix()
    .optional()
    .describe(
      'Address of the blob service, for other clouds, a domain of your own or Azurite. Default: the account below blob.core.windows.net.',
    ),
  urlPrefix: urlPrefix()
    .optional()
    .describe('Address below which visitors find the blobs, such as a CDN. Default: that of the container.'),
  url: z
    .enum(['public', 'sas'])
    .default('public')
    .describe('Answer with plain URLs, or with signed ones that open a private container for a while.'),
  sasForS: z
    .number()
    .int()
    .min(60)
    .max(TEN_YEARS_S)
    .default(7 * 86_400)
    .describe('How long signed URLs work, for which the account key is needed. Seconds, 7 days by default.'),
  cacheControl: header()
    .optional()
    .describe(
      'Cache-Control of every blob. Default: "public, max-age=86400", with signed URLs "private, …".',
    ),
  contentDisposition: header()
    .default('inline')
    .describe('Content-Disposition of every blob: "inline" shows it, "attachment" downloads it.'),
  accessTier: z
    .enum(['Hot', 'Cool', 'Cold'])
    .optional()
    .describe('Access tier of every blob. Default: that of the account.'),
  ...httpOptions,
})

type Options = z.output<typeof config>

/** A container of Azure Blob Storage. */
export const azure = defineProvider({
  type: 'azure',
  about: {
    family: 'bucket',
    what: 'Azure Blob Storage',
    testedAgainst: 'Azurite',
    example: {
      blog: {
        account: 'pictures1',
        container: 'img',
        accountKey: 'AZURE_KEY',
        urlPrefix: 'https://img.example.com',
      },
      private: {
        account: 'pictures1',
        container: 'drafts',
        accountKey: 'AZURE_KEY',
        url: 'sas',
        sasForS: 86400,
      },
      web: {
        account: 'pictures1',
        container: '$web',
        sasToken: 'AZURE_SAS',
        urlPrefix: 'https://pictures1.z6.web.core.windows.net',
      },
    },
    signs: 'accountKey',
    choices: [
      {
        label: 'Azure Blob Storage',
        asks: ['account', 'container', 'accountKey?', 'sasToken?'],
        where: 'the storage account, Security + networking → Access keys. One of key and token is enough.',
      },
    ],
  },
  config,
  validate,
  open,
})

function validate(options: Options): string | undefined {
  const { accountKey, sasToken, container, url } = options
  if ((accountKey === undefined) === (sasToken === undefined))
    return 'Give an "accountKey" or a "sasToken", one of them.'
  if (accountKey !== undefined && !/^[A-Za-z0-9+/]{40,}={0,2}$/.test(accountKey))
    return '"accountKey" is no key: it has to be in Base64, as the portal shows it. A whole connection string is too much.'
  if (sasToken !== undefined && !/^(?!\?)(.*&)?sig=/.test(sasToken))
    return '"sasToken" has to be the part of a SAS URL behind the question mark, "sv=…&sig=…".'
  if (url === 'sas' && accountKey === undefined) return '"url": "sas" needs the "accountKey" to sign with.'
  if (container === '$web' && url === 'public' && options.urlPrefix === undefined)
    return '"urlPrefix" is needed for "$web": the address of the web site, which the portal shows.'
  return undefined
}

function open(options: Options, deps: ProviderDeps): Target {
  const { account, container: name, accountKey, sasToken, url, accessTier } = options
  const endpoint = options.endpoint ?? `https://${account}.blob.core.windows.net`
  const address = joinUrl(endpoint, name)
  const publicUrl = options.urlPrefix ?? address
  const key = { account, key: accountKey ?? '' }
  const access: Access = sasToken === undefined ? { key } : { sasToken }
  const client = createHttpClient(options, deps)
  const container = createContainer(address, access, client)
  const cacheControl = options.cacheControl ?? `${url === 'sas' ? 'private' : 'public'}, max-age=86400`
  const properties = {
    'x-ms-blob-cache-control': cacheControl,
    'x-ms-blob-content-disposition': options.contentDisposition,
    ...(accessTier && { 'x-ms-access-tier': accessTier }),
  }

  function signedUrl(blob: string, forS: number): string {
    const plain = joinUrl(publicUrl, blob)
    const expires = new Date(Date.now() + forS * 1000)
    return `${plain}?${createReadToken(`${name}/${blob}`, expires, plain.startsWith('http:'), key)}`
  }

  return {
    async put(object, signal) {
      await putBlob(container, object, properties, signal)
      const blob = object.key
      return { url: url === 'public' ? joinUrl(publicUrl, blob) : signedUrl(blob, options.sasForS) }
    },
    linksEnd: url === 'sas',
    // What may be read may be looked at.
    ...(accountKey !== undefined && {
      async sign(blob, _method, mostS) {
        const forS = Math.min(options.sasForS, mostS)
        return { url: signedUrl(blob, forS), forS }
      },
    }),
    check: signal => probeContainer(container, signal),
    async exists(key, signal) {
      const { status } = await container.send({ method: 'HEAD', name: key, accept: [200, 404] }, signal)
      return status === 200
    },
    async remove(key, signal) {
      const headers = { 'x-ms-delete-snapshots': 'include' }
      await container.send({ method: 'DELETE', name: key, headers, accept: [202, 404] }, signal)
    },
    async close() {
      client.close()
    },
  }
}
