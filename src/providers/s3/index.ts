import * as z from '../../packages/zod.ts'
import { defineProvider } from '../contract.ts'
import { s3Options } from './options.ts'
import { fromPicGo } from './picgo-s3.ts'
import { findProblem, requireSettings } from './settings.ts'
import { openS3 } from './target.ts'

/** Amazon S3 and everything that speaks its protocol. */
export const s3 = defineProvider({
  type: 's3',
  config: z.object(s3Options),
  validate: findProblem,
  fromPicGo,
  open: (options, deps) => openS3('s3', requireSettings(options), deps),
})
