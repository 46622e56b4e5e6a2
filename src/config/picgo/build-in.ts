import { isRecord } from '../../members.ts'
import type { Old } from './old.ts'

/** `buildIn` as it applies to one destination, or to all. */
export interface BuildIn {
  /** `rename`, `compress` or `watermark`. */
  section(name: string): Old
  /** `autoRename`, which is a setting of its own in general. */
  readonly byTimestamp: unknown
}

/** PicList's options for file names and images, and what single destinations have instead. */
export interface BuildIns {
  readonly general: BuildIn
  /** @param id the `_id` of the configuration, which `buildIn.list` names */
  of(uploader: string, id: string | undefined): BuildIn
}

/** Applies the overrides for uploaders (`…Map`), then those for single configurations (`list`). */
export function readBuildIn(buildIn: Old, settings: Old): BuildIns {
  const entries = buildIn.list('list')
  const byTimestamp = settings.get('autoRename')
  return {
    general: { section: name => buildIn.section(name), byTimestamp },
    of(uploader, id) {
      const entry = entries.find(one => id !== undefined && one.text('id') === id)
      return {
        byTimestamp: entry?.get('autoRename') ?? byTimestamp,
        section(name) {
          const section = buildIn.section(name)
          const own = entry?.get(name) === undefined ? undefined : entry.section(name)
          const mapped = Object.entries(section.all).flatMap(([option, value]): [string, unknown][] =>
            option.endsWith('Map') && isRecord(value) && Object.hasOwn(value, uploader)
              ? [[option.slice(0, -'Map'.length), value[uploader]]]
              : [],
          )
          return (own ?? section).with({ ...section.all, ...Object.fromEntries(mapped), ...own?.all })
        },
      }
    },
  }
}
