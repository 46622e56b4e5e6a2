import * as z from '../../packages/zod.ts'
import { defineProvider } from '../contract.ts'
import { s3Options } from './options.ts'
import { picgo } from './picgo.ts'
import { findProblem, requireSettings } from './settings.ts'
import { openS3 } from './target.ts'

/** Amazon S3 and compatible services. */
export const s3 = defineProvider({
  type: 's3',
  about: {
    family: 'bucket',
    what: 'S3 and compatible services, with presets for AWS, R2, MinIO, B2, Wasabi, OBS, TOS, GCS, …',
    testedAgainst: 'Ceph radosgw; hostnames and signatures of the presets against recorded fixtures',
    signs: true,
    choices: [
      {
        label: 'Cloudflare R2',
        options: { preset: 'cloudflare-r2' },
        asks: ['accountId', 'bucket', 'accessKeyId', 'secretAccessKey', 'urlPrefix'],
        where: 'R2 → Manage API tokens, with "Object Read & Write".',
      },
      {
        label: 'Amazon S3',
        options: { preset: 'aws' },
        asks: ['bucket', 'region', 'accessKeyId?', 'secretAccessKey?', 'urlPrefix?'],
        where: 'IAM → Users → Security credentials → Create access key.',
      },
      {
        label: 'Another S3 service',
        hint: 'MinIO, RustFS, Backblaze B2, Wasabi, DigitalOcean, Tigris, OBS, TOS, BOS, GCS, Ceph…',
        asks: ['endpoint', 'bucket', 'region?', 'accessKeyId', 'secretAccessKey', 'urlPrefix?'],
      },
    ],
  },
  config: z.object(s3Options),
  redirected: { linkType: 'presigned' },
  validate: findProblem,
  picgo,
  open: (options, deps) => openS3('s3', requireSettings(options), deps),
})
