import { describe, expect, it } from 'vitest'
import { azure } from '../../../src/providers/azure/index.ts'

const accountKey = Buffer.alloc(64, 'key').toString('base64')
const options = { account: 'pictures1', container: 'img', accountKey }
const sas = { accountKey: undefined, sasToken: 'sv=2021-12-02&sp=racwd&sig=abc%3D' }

function problemOf(more: Record<string, unknown>): string | undefined {
  const result = azure.config.strict().safeParse({ ...options, ...more })
  return result.success ? azure.validate?.(result.data) : result.error.issues[0]?.message
}

describe('the options', () => {
  it.each([
    {},
    sas,
    { ...sas, sasToken: 'sig=abc&sv=1' },
    { container: '$web', urlPrefix: 'https://pictures1.z6.web.core.windows.net' },
    { container: '$web', linkType: 'sas' },
    { endpoint: 'http://127.0.0.1:10000/devstoreaccount1', linkType: 'sas', sasFor: '1m' },
    { accessTier: 'Cold', cacheControl: 'public, max-age=1', contentDisposition: 'attachment' },
  ])('fit: %j', more => {
    expect(problemOf(more)).toBeUndefined()
  })

  it.each([
    [{ accountKey: undefined }, 'either "accountKey" or'],
    [{ sasToken: sas.sasToken }, 'either "accountKey" or'],
    [{ accountKey: 'DefaultEndpointsProtocol=https;AccountName=x;AccountKey=y==' }, 'connection string'],
    [{ accountKey: 'short' }, 'must be the Base64 access key'],
    [{ ...sas, sasToken: `?${sas.sasToken}` }, 'after the question mark'],
    [{ ...sas, sasToken: 'https://a.blob.core.windows.net/c?sv=1' }, 'after the question mark'],
    [{ ...sas, linkType: 'sas' }, 'needs the "accountKey"'],
    [{ container: '$web' }, '"urlPrefix" is required'],
    [{ container: '$root' }, 'must be the name of a container'],
    [{ container: 'Img' }, 'must be the name of a container'],
    [{ container: 'a--b' }, 'must be the name of a container'],
    [{ container: 'ab' }, 'must be the name of a container'],
    [{ container: 'a/b' }, 'must be the name of a container'],
    [{ account: 'my-account' }, 'must be the name of a storage account'],
    [{ endpoint: 'a.blob.core.windows.net' }, 'must be an http or https URL'],
    [{ endpoint: 'https://a.blob.core.windows.net/?sv=1' }, 'must not have a query'],
    [{ accessTier: 'Archive' }, 'Invalid option'],
    [{ cacheControl: 'a\r\nb: c' }, 'printable ASCII'],
    [{ contentDisposition: ' inline' }, 'printable ASCII'],
    [{ sasFor: '1s' }, 'must be a time'],
  ])('do not fit: %j', (more, problem) => {
    expect(problemOf(more)).toContain(problem)
  })
})
