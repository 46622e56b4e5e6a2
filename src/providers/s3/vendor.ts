import * as z from '../../packages/zod.ts'
import { type About, defineProvider, type Provider } from '../contract.ts'
import type { Translated } from '../shared/picgo-options.ts'
import { toUrlSuffix } from '../shared/public-url.ts'
import { bucketOptions, s3Options } from './options.ts'
import { createReader, toKeyTemplate, toUrlPrefix } from './picgo.ts'
import type { PresetName } from './presets.ts'
import { findProblem, requireSettings } from './settings.ts'
import { openS3 } from './target.ts'

const s3 = z.strictObject(s3Options)

/** A vendor for which PicGo has a separate uploader, with the names of PicGo. */
export interface Vendor {
  readonly type: PresetName
  readonly about: About
  /** PicGo's options in its format: strings that are empty if unset. Names that exist in both have the meaning here. */
  readonly options: Readonly<Record<string, z.ZodType>>
  /** Options that PicGo has under other names: from its name to the name here. */
  readonly names: Readonly<Record<string, keyof typeof bucketOptions>>
  /** Translates options that need more than another name. */
  adapt(reading: PicGoOptions): void
}

/** PicGo's options during their translation. */
interface PicGoOptions {
  readonly options: Readonly<Record<string, unknown>>
  /** Returns an option as text. Undefined if it is unset. */
  read(name: string): string | undefined
  /** The translated options. */
  readonly ours: Record<string, unknown>
  readonly notes: string[]
}

/** Makes a provider for a preset of S3 that accepts the option names of `s3` and those of PicGo. */
export function defineVendor(vendor: Vendor): Provider {
  const config = z.object({ ...bucketOptions, ...vendor.options })

  /** @returns a sentence if the options are invalid */
  function toS3(options: Record<string, unknown>): z.output<typeof s3> | string {
    for (const [theirs, ours] of Object.entries(vendor.names)) {
      if (options[theirs] && options[ours] && theirs !== ours) {
        return `"${theirs}" and "${ours}" are the same option. Set only one of them.`
      }
    }
    const rest = Object.entries(options).filter(([name]) => Object.hasOwn(bucketOptions, name))
    const given = rest.filter(([name, value]) => value !== '' && !Object.hasOwn(vendor.names, name))
    const translated = translate(vendor, options, [])
    const parsed = s3.safeParse({ ...Object.fromEntries(given), ...translated, preset: vendor.type })
    if (parsed.success) return parsed.data
    const [issue] = parsed.error.issues
    return `"${issue?.path.join('.')}" is wrong: ${issue?.message}.`
  }

  return defineProvider({
    type: vendor.type,
    about: vendor.about,
    config,
    redirected: { linkType: 'presigned' },
    validate(options) {
      const ours = toS3(options)
      return typeof ours === 'string' ? ours : findProblem(ours)
    },
    open(options, deps) {
      const ours = toS3(options)
      if (typeof ours === 'string') throw new Error(ours)
      return openS3(vendor.type, requireSettings(ours), deps)
    },
    fromPicGo: options => readPicGo(vendor, options),
  })
}

/** Translates PicGo's options to those of `s3`. */
function translate(
  { names, adapt }: Vendor,
  options: Record<string, unknown>,
  notes: string[],
): Record<string, unknown> {
  const read = createReader(options)
  const ours: Record<string, unknown> = {}
  for (const [theirName, ourName] of Object.entries(names)) {
    const value = read(theirName)
    if (value === undefined) continue
    ours[ourName] =
      ourName === 'urlPrefix'
        ? toUrlPrefix(value, theirName, notes)
        : ourName === 'urlSuffix'
          ? toUrlSuffix(value)
          : value
  }
  adapt({ options, read, ours, notes })
  return Object.fromEntries(Object.entries(ours).filter(([, value]) => value !== undefined))
}

/** Options with the same name in PicGo. */
const SHARED = ['bucket', 'accessKeyId', 'endpoint'] as const

function readPicGo(vendor: Vendor, options: Record<string, unknown>): Translated {
  const notes: string[] = []
  const read = createReader(options)
  const shared = SHARED.map(name => [name, read(name)] as const).filter(([, value]) => value !== undefined)
  const ours = { ...Object.fromEntries(shared), ...translate(vendor, options, notes) }
  // If URLs have another folder, both must be options, because the object key starts with only one of them.
  const webPath = read('webPath')
  const folders = webPath && { path: read('path') ?? '', webPath }
  const keyTemplate = toKeyTemplate(webPath ? undefined : read('path'), notes)
  return { options: { ...ours, ...folders, keyTemplate }, notes }
}
