import * as z from '../../packages/zod.ts'
import { defineProvider, type Provider } from '../contract.ts'
import type { PicGoOptions } from '../shared/picgo-options.ts'
import { openS3, validate } from './index.ts'
import { bucketOptions, type S3Options, STANDARD_PARTS } from './options.ts'
import { PRESETS, type Preset, type PresetName } from './presets.ts'

/** A vendor for which PicGo has a separate uploader. Its options are those of `s3`, without `preset` and multipart uploads. */
interface Vendor {
  readonly type: PresetName
  readonly name: string
  /** Name in `init`. */
  readonly label: string
  /** Where a person creates the access keys. */
  readonly where: string
  /** Translates PicGo's options, except the folders. */
  picgo(old: PicGoOptions): Partial<S3Options>
}

/** Makes a provider of a preset of S3. */
export function defineVendor({ type, name, label, where, picgo }: Vendor): Provider {
  const { publicHost }: Preset = PRESETS[type]
  const asks = ['bucket', 'region', 'accessKeyId', 'secretAccessKey', publicHost ? 'urlPrefix?' : 'urlPrefix']
  const config = z.object(bucketOptions)
  const withPreset = (options: z.output<typeof config>) => ({ ...options, ...STANDARD_PARTS, preset: type })
  return defineProvider<typeof config>({
    type,
    about: {
      family: 'bucket',
      what: `${name}: \`s3\` with a preset`,
      testedAgainst: 'as `s3`',
      signs: true,
      choices: [{ label, asks, where }],
    },
    config,
    redirected: { linkType: 'presigned' },
    validate: options => validate(withPreset(options)),
    open: (options, context) => openS3(type, withPreset(options), context),
    picgo(old) {
      // If URLs have another folder, both must be options, because the object key starts with only one of them.
      const [path, webPath] = [old.text('path'), old.text('webPath')]
      const folders = webPath === undefined ? {} : { path: path ?? '', webPath }
      return {
        bucket: old.text('bucket'),
        endpoint: old.text('endpoint'),
        ...picgo(old),
        ...folders,
        keyTemplate: old.template(webPath === undefined ? path : undefined),
      }
    },
  })
}
