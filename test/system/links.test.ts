import { expect, it } from 'vitest'
import { upload } from '../helpers/form.ts'
import { needs } from '../helpers/needs.ts'
import { startApp } from '../helpers/start-app.ts'
import { RADOSGW_NEEDS, startRadosgw } from '../servers/radosgw.ts'

const PRIVATE = { urlPrefix: undefined, link: 'redirect' }

it('a private bucket of Ceph is read by GET and HEAD through its links', async context => {
  for (const [program, debianPackage] of RADOSGW_NEEDS) needs(context, program, debianPackage)
  const rgw = await startRadosgw()
  try {
    await rgw.createBucket('drafts', { isPrivate: true })
    const s3 = { endpoint: rgw.url, bucket: 'drafts', path: 'in here', ...rgw.owner, ...PRIVATE }
    const app = await startApp({ config: { providers: { s3: { drafts: s3 } } } })
    const [link = ''] = (await upload(`${app.url}/upload`, { 'ü (1).txt': 'private' })).result
    for (const method of ['GET', 'HEAD']) {
      const { status, headers } = await fetch(link, { method })
      expect([method, status, headers.get('content-length')]).toEqual([method, 200, '7'])
    }
  } finally {
    await rgw.close()
  }
})
