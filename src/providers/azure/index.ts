import { headerValue, secret, time } from '../../options.ts'
import * as z from '../../packages/zod.ts'
import { type Context, defineProvider, type Target } from '../contract.ts'
import { locationAt } from '../shared/location.ts'
import { findDoubledName, joinUrl, urlPrefix } from '../shared/public-url.ts'
import { createContainer } from './container.ts'
import { createReadToken } from './sign.ts'

const TEN_YEARS_MS = 10 * 365 * 86_400_000

const config = z.object({
  account: z
    .string()
    .regex(/^[a-z0-9]{3,24}$/, 'must be the name of a storage account: 3 to 24 lower-case letters and digits')
    .describe('Name of the storage account.'),
  container: z
    .string()
    .regex(/^(\$web|(?=.{3,63}$)[a-z0-9]+(-[a-z0-9]+)*)$/, 'must be the name of a container, or "$web"')
    .describe('Name of an existing container. "$web" is the container of the static website.'),
  accountKey: secret().optional().describe('One of the two access keys of the storage account.'),
  sasToken: secret()
    .optional()
    .describe(
      'Shared access signature ("sv=…&sig=…") instead of the account key. Needs the permissions read, create, write and delete.',
    ),
  endpoint: urlPrefix()
    .optional()
    .describe(
      'URL of the blob service, for sovereign clouds, a custom domain or Azurite. Default: "https://<account>.blob.core.windows.net".',
    ),
  urlPrefix: urlPrefix()
    .optional()
    .describe('Public base URL of the blobs, such as that of a CDN. Default: the URL of the container.'),
  linkType: z
    .enum(['public', 'sas'])
    .default('public')
    .describe(
      'Type of the returned URLs. "public": plain URLs. "sas": signed URLs that expire, for a private container.',
    ),
  sasFor: time(60_000, TEN_YEARS_MS)
    .prefault('7d')
    .describe('Lifetime of signed URLs, such as "12h". Signing needs the account key.'),
  cacheControl: headerValue()
    .optional()
    .describe(
      'Cache-Control header of every blob. Default: "public, max-age=86400", or "private, max-age=86400" with signed URLs.',
    ),
  contentDisposition: headerValue()
    .default('inline')
    .describe(
      'Content-Disposition header of every blob. "inline": browsers show it. "attachment": browsers download it.',
    ),
  accessTier: z
    .enum(['Hot', 'Cool', 'Cold'])
    .optional()
    .describe('Access tier of every blob. Default: the tier of the account.'),
})

type Options = z.output<typeof config>

/** A container of Azure Blob Storage. */
export const azure = defineProvider({
  type: 'azure',
  about: {
    family: 'bucket',
    what: 'Azure Blob Storage',
    testedAgainst: 'Azurite',
    signs: 'accountKey',
    choices: [
      {
        label: 'Azure Blob Storage',
        asks: ['account', 'container', 'accountKey?', 'sasToken?'],
        where:
          'the storage account, Security + networking → Access keys. Set either the account key or a SAS token.',
      },
    ],
  },
  config,
  redirected: { linkType: 'sas' },
  validate,
  open,
})

function validate(options: Options): string | undefined {
  const { accountKey, sasToken, container, linkType } = options
  if ((accountKey === undefined) === (sasToken === undefined)) return 'Set either "accountKey" or "sasToken".'
  if (accountKey !== undefined && !/^[A-Za-z0-9+/]{40,}={0,2}$/.test(accountKey))
    return '"accountKey" must be the Base64 access key that the portal shows, not a connection string.'
  if (sasToken !== undefined && !/^(?!\?)(.*&)?sig=/.test(sasToken))
    return '"sasToken" must be the part of a SAS URL after the question mark, "sv=…&sig=…".'
  if (linkType === 'sas' && accountKey === undefined)
    return '"linkType": "sas" and "link": "redirect" need the "accountKey" to sign with.'
  if (container === '$web' && linkType === 'public' && options.urlPrefix === undefined)
    return '"urlPrefix" is required for "$web". Set it to the URL of the static website, which the portal shows.'
  return options.endpoint && findDoubledName(options.endpoint, 'container', container)
}

function open(options: Options, { http }: Context): Target {
  const { account, container, accountKey, sasToken, accessTier, linkType } = options
  const sasForS = Math.floor(options.sasFor / 1000)
  const address = joinUrl(options.endpoint ?? `https://${account}.blob.core.windows.net`, container)
  const publicUrl = options.urlPrefix ?? address
  const key = { account, key: accountKey ?? '' }
  const isPublic = linkType === 'public'
  const properties = {
    'x-ms-blob-cache-control': options.cacheControl ?? `${isPublic ? 'public' : 'private'}, max-age=86400`,
    'x-ms-blob-content-disposition': options.contentDisposition,
    ...(accessTier && { 'x-ms-access-tier': accessTier }),
  }
  const blobs = createContainer(address, sasToken === undefined ? { key } : { sasToken }, properties, http)

  function signedUrl(blob: string, forS: number): string {
    const plain = joinUrl(publicUrl, blob)
    const expires = new Date(Date.now() + forS * 1000)
    return `${plain}?${createReadToken(`${container}/${blob}`, expires, plain.startsWith('http:'), key)}`
  }

  return {
    ...blobs,
    location: locationAt('azure', address),
    traits: { linksExpire: !isPublic, keyFault },
    async put(object, signal) {
      await blobs.put(object, signal)
      return { url: isPublic ? joinUrl(publicUrl, object.key) : signedUrl(object.key, sasForS) }
    },
    // The permission to read also allows HEAD.
    ...(accountKey !== undefined && {
      async sign(blob, _method, mostS) {
        const forS = Math.min(sasForS, mostS)
        return { url: signedUrl(blob, forS), forS }
      },
    }),
  }
}

/** The service removes a dot at the end of a part of a name. */
function keyFault(key: string): string | undefined {
  return key.split('/').some(part => part.endsWith('.')) ? 'a part of it ends with a dot' : undefined
}
