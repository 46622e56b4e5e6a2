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

/** A vendor for which PicGo has an uploader of its own, under its name and with its words. */
export interface Vendor {
  readonly type: PresetName
  readonly about: About
  /** PicGo's options as it writes them: text, empty when unset. Those that are also ours have our meaning. */
  readonly options: Readonly<Record<string, z.ZodType>>
  /** PicGo's names for options of ours. */
  readonly names: Readonly<Record<string, keyof typeof bucketOptions>>
  /** Changes what cannot be taken over as it is. */
  adapt(reading: PicGoOptions): void
}

/** PicGo's options while they are read. */
interface PicGoOptions {
  readonly options: Readonly<Record<string, unknown>>
  /** An option as text; undefined when it is unset. */
  read(name: string): string | undefined
  /** What has been read, under our names. */
  readonly ours: Record<string, unknown>
  readonly notes: string[]
}

/** A provider that takes our option names and PicGo's, and is a preset of S3 behind. */
export function defineVendor(vendor: Vendor): Provider {
  const config = z.object({ ...bucketOptions, ...vendor.options })

  /** @returns a sentence when something is wrong */
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

/** PicGo's options under our names. */
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

/** Names that PicGo and we have in common. */
const SHARED = ['bucket', 'accessKeyId', 'endpoint'] as const

function readPicGo(vendor: Vendor, options: Record<string, unknown>): Translated {
  const notes: string[] = []
  const read = createReader(options)
  const shared = SHARED.map(name => [name, read(name)] as const).filter(([, value]) => value !== undefined)
  const ours = { ...Object.fromEntries(shared), ...translate(vendor, options, notes) }
  // Where URLs have another folder, it has to be an option: the key begins with one of the two only.
  const webPath = read('webPath')
  const folders = webPath && { path: read('path') ?? '', webPath }
  const keyTemplate = toKeyTemplate(webPath ? undefined : read('path'), notes)
  return { options: { ...ours, ...folders, keyTemplate }, notes }
}
