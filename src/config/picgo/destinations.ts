import { isDeepStrictEqual } from 'node:util'
import { isRecord, type Json } from '../../members.ts'
import { canonicalType } from '../../providers/registry.ts'
import { textOf } from '../../providers/shared/picgo-options.ts'
import { configName } from '../values.ts'
import type { Old } from './old.ts'

/** Uploaders of PicGo and PicList, and of S3 plugins, whose options one of our providers can read. */
const UPLOADERS = new Set(
  (
    'aliyun tcyun qiniu upyun github imgur smms local piclist ' +
    'webdavplist sftpplist lskyplist aws-s3 aws-s3-plist web-uploader advancedplist'
  ).split(' '),
)

const insteadOf = (provider: string) =>
  `its options can't be imported. Configure the provider "${provider}" instead`

/** Why other uploaders are skipped. */
const SKIPPED = new Map([
  ['gitee', 'Gitee blocks requests from other websites, so images there do not show'],
  ['telegraphplist', 'Telegraph no longer accepts uploads'],
  ['picgo-cloud', 'PicGo Cloud accepts uploads only from PicGo'],
  ['lankong', insteadOf('lsky')],
  ['minio', insteadOf('s3')],
  ['alist', insteadOf('openlist')],
  ['githubPlus', insteadOf('github')],
])

const reasonOf = (type: string) => SKIPPED.get(type) ?? `there is no provider for "${type}"`

/** Members of `picBed` that are not uploaders. */
const NO_UPLOADERS = new Set(
  'uploader current transformer proxy list secondUploader secondUploaderId secondUploaderConfig'.split(' '),
)

/** Members that PicGo adds to the options for its own use. */
const BOOKKEEPING = new Set(['_id', '_configName', '_createdAt', '_updatedAt'])

/** One configuration of an uploader in PicGo, which becomes a destination. */
export interface Saved {
  /** The uploader. */
  readonly type: string
  /** Path in the old file. */
  readonly path: string
  /** Our name of the destination: `provider/configName`. */
  readonly id: string
  /** Its `_id` in the old file. */
  readonly oldId: string | undefined
  /** Options of the uploader. */
  readonly options: Json
}

export interface Destinations {
  readonly all: readonly Saved[]
  /** The current uploader even if it could not be imported: files must not be stored where the user did not choose. */
  readonly inUse: string | undefined
  /** The destination that gets a copy of every file. */
  readonly mirror: string | undefined
  /** Why the current uploader can't be used. */
  readonly problem: string | undefined
}

/** Lists what the file has saved, under names that are unique here. */
export function listDestinations(file: Old): Destinations {
  const [picBed, uploader] = [file.section('picBed'), file.section('uploader')]
  const all: Saved[] = []
  const taken = new Set<string>()

  /** Reserves a name, or the first free one with a suffix `-2`, `-3`… */
  function reserve(type: string, name: string): string {
    const id = `${canonicalType(type)}/${name}`
    let free = id
    for (let number = 2; taken.has(free); number++) free = `${id}-${number}`
    taken.add(free)
    return free
  }

  /** @returns undefined, with a note, if none of its options is set */
  function add(type: string, old: Old): string | undefined {
    const [options, name] = [optionsIn(old), nameOf(old)]
    if (!Object.values(options).some(isSet))
      return void old.note('', 'was skipped: none of its options is set')
    const id = reserve(type, name)
    const given = id.slice(id.indexOf('/') + 1)
    if (given !== name) old.note('', `is called "${given}" here, because "${name}" is already in use`)
    all.push({ type, path: old.path, id, oldId: old.text('_id'), options })
    return id
  }

  // PicGo reads `uploader` first and keeps `current` for old versions.
  const current = picBed.text('uploader') ?? picBed.text('current')
  let inUse: string | undefined
  for (const type of listTypes(picBed, uploader, current)) {
    const { saved, active } = readSaved(type, picBed, uploader)
    const isKnown = UPLOADERS.has(type)
    if (!isKnown && saved.length > 0)
      (Object.hasOwn(uploader.all, type) ? uploader : picBed).note(type, `was skipped: ${reasonOf(type)}`)
    const ids = new Map((isKnown ? saved : []).map(one => [one, add(type, one)]))
    if (type === current)
      inUse = (active && ids.get(active)) ?? reserve(type, active ? nameOf(active) : 'Default')
  }
  const second = readSecond(picBed, file.section('settings'))
  const isSecond = (one: Saved) => one.type === second?.type && one.oldId === second.old.text('_id')
  const mirror = second && (all.find(isSecond)?.id ?? add(second.type, second.old))
  if (all.length === 0) picBed.note('', 'has no destination that can be imported')
  if (current === undefined && all.length > 1)
    picBed.note(
      'uploader',
      'is missing. Set "default" to one of the destinations, or choose an uploader in PicGo',
    )
  return { all, inUse, mirror, problem: problemOf(all, current, inUse) }
}

/** The current type comes first, so that its destinations keep their names if two types share a provider. */
function listTypes(picBed: Old, uploader: Old, current: string | undefined): Set<string> {
  const fromPicBed = Object.entries(picBed.all).filter(
    ([type, value]) => !NO_UPLOADERS.has(type) && (isRecord(value) || UPLOADERS.has(type)),
  )
  return new Set([current ?? [], Object.keys(uploader.all), fromPicBed.map(([type]) => type)].flat())
}

/**
 * Reads the configurations of one uploader, and which is active. `uploader.<type>` holds all of them; `picBed.<type>` is a
 * copy of the active one, and the only one in older files.
 */
function readSaved(
  type: string,
  picBed: Old,
  uploader: Old,
): { readonly saved: readonly Old[]; readonly active?: Old | undefined } {
  const [store, copy] = [uploader.section(type), picBed.section(type)]
  const saved = store.list('configList')
  if (saved.length === 0)
    return Object.keys(copy.all).length > 0 ? { saved: [copy], active: copy } : { saved }
  const byId = (id: string | undefined) => saved.find(one => id !== undefined && one.text('_id') === id)
  const named = byId(store.text('defaultId'))
  const active = named ?? byId(copy.text('_id')) ?? saved[0]
  const name = active && nameOf(active)
  if (named === undefined && store.text('defaultId') !== undefined)
    store.note('defaultId', `does not match a configuration, so "${name}" is used`)
  const options = optionsIn(copy)
  if (Object.keys(options).length > 0 && active && !isDeepStrictEqual(options, optionsIn(active)))
    picBed.note(type, `was ignored: it differs from "${name}" in "uploader.${type}", which is used`)
  return { saved, active }
}

const optionsIn = ({ all }: Old): Json =>
  Object.fromEntries(Object.entries(all).filter(([name]) => !BOOKKEEPING.has(name)))

const isSet = (value: unknown) => textOf(value) !== undefined || (typeof value !== 'string' && Boolean(value))

/** What its user called a configuration, if a destination can have that name. */
function nameOf(old: Old): string {
  const name = old.text('_configName')
  if (name !== undefined && configName.safeParse(name).success && !/\p{Cc}/u.test(name)) return name
  if (old.get('_configName') !== undefined) {
    const what = name === undefined ? 'text' : 'a valid name'
    old.note('_configName', `is not ${what}, so the destination is called "Default"`)
  }
  return 'Default'
}

/** PicList's second uploader stores a copy of every file. If the copy fails, the upload still succeeds. */
function readSecond(picBed: Old, settings: Old): { type: string; old: Old } | undefined {
  if (!settings.isOn('enableSecondUploader')) return undefined
  const type = picBed.text('secondUploader')
  const old = picBed.section('secondUploaderConfig')
  if (type !== undefined && UPLOADERS.has(type) && Object.keys(old.all).length > 0) return { type, old }
  settings.note('enableSecondUploader', 'was ignored: no second uploader is chosen that can be used here')
  return undefined
}

/** Why the current uploader can't be used; undefined if it can, or if there is none. */
function problemOf(all: readonly Saved[], current: string | undefined, inUse?: string) {
  if (current === undefined || all.some(({ id }) => id === inUse)) return undefined
  const why = UPLOADERS.has(current)
    ? 'has no usable settings. Complete them, or choose'
    : `was skipped: ${reasonOf(current)}. Choose`
  return `"picBed.uploader" is "${current}", which ${why} another uploader.`
}
