import { isRecord, type Json } from '../../members.ts'
import { canonicalType } from '../../providers/registry.ts'
import { compact, type Old, type OnNote, textOf } from './old.ts'
import type { Pictures } from './pictures.ts'
import { readItem, readSaved, type Saved } from './saved.ts'

/** Uploaders of PicGo and PicList, and of S3 plugins, whose options one of our providers can read. */
const UPLOADERS = new Set(
  (
    'aliyun tcyun qiniu upyun github imgur smms local piclist ' +
    'webdavplist sftpplist lskyplist aws-s3 aws-s3-plist web-uploader advancedplist'
  ).split(' '),
)

const WITHOUT_PROVIDER = new Map([
  ['gitee', 'Gitee blocks requests from other websites, so images there do not show'],
  ['telegraphplist', 'Telegraph no longer accepts uploads'],
  ['picgo-cloud', 'PicGo Cloud accepts uploads only from PicGo'],
])

/** Uploaders of plugins whose options are not read, and the provider that stores at the same destination. */
const EQUIVALENTS = new Map([
  ['lankong', 'lsky'],
  ['minio', 's3'],
  ['alist', 'openlist'],
  ['githubPlus', 'github'],
])

/** Members of `picBed` that are not uploaders. */
const NO_UPLOADERS = new Set(
  'uploader current transformer proxy list secondUploader secondUploaderId secondUploaderConfig'.split(' '),
)

interface Context {
  readonly templates: ReadonlyMap<string, string>
  readonly pictures: Pictures
  readonly note: OnNote
  /** Gets the id of a destination (`provider/configName`) and its path in the old file. */
  readonly found: (id: string, path: string) => void
}

/**
 * All destinations by provider and name. `default` is the current uploader even if it could not be imported, because files
 * must not be stored at a destination that the user has not chosen.
 */
export function translateDestinations(
  picBed: Old,
  uploader: Old,
  settings: Old,
  { templates, pictures, note, found }: Context,
): { providers: Record<string, Json>; default: string | undefined } {
  /** Options by provider and name; undefined for a name that is only reserved. */
  const all = new Map<string, Map<string, Json | undefined>>()
  /** Destinations by uploader type and `_id`. */
  const ids = new Map<string, string>()

  /** Reserves a name, or the first free one with a suffix `-2`, `-3`… */
  function reserve(provider: string, name: string): string {
    const names = all.get(provider) ?? new Map()
    all.set(provider, names)
    let free = name
    for (let number = 2; names.has(free); number++) free = `${name}-${number}`
    names.set(free, undefined)
    return free
  }

  /** @returns the id of the destination; undefined, with a note, if none of its options is set */
  function add(type: string, one: Saved): string | undefined {
    if (!isFilled(one)) {
      note(one.path, 'was skipped: none of its options is set')
      return undefined
    }
    const provider = canonicalType(type)
    const name = reserve(provider, one.name)
    if (name !== one.name) note(one.path, `is called "${name}" here, because "${one.name}" is already in use`)
    const keyTemplate = one.id === undefined ? undefined : templates.get(one.id)
    all.get(provider)?.set(name, compact({ ...one.options, keyTemplate, images: pictures.own(type, one.id) }))
    const id = `${provider}/${name}`
    found(id, one.path)
    if (one.id !== undefined) ids.set(`${type}/${one.id}`, id)
    return id
  }

  const current = readCurrent(picBed)
  let chosen: string | undefined
  for (const type of listTypes(picBed, uploader, current)) {
    const { saved, active } = readSaved(type, picBed, uploader, note)
    if (!UPLOADERS.has(type)) noteUnsupported(type, saved, note)
    const added = new Map(UPLOADERS.has(type) ? saved.map(one => [one, add(type, one)]) : [])
    const id = active && added.get(active)
    const provider = canonicalType(type)
    if (type === current) chosen = id ?? `${provider}/${reserve(provider, active?.name ?? 'Default')}`
    else if (saved.length > 1 && id !== undefined && id !== `${provider}/Default`)
      uploader.note(
        `${type}.defaultId`,
        `was ignored: a request for "${type}" must specify configName "${id.slice(provider.length + 1)}"`,
      )
  }

  const mirror = readMirror(
    picBed,
    settings,
    note,
    (type, one) => ids.get(`${type}/${one.id}`) ?? add(type, one),
  )
  const providers = Object.fromEntries(
    [...all].flatMap(([provider, names]) => {
      const filled = [...names].flatMap(([name, options]): [string, Json][] => {
        if (options === undefined) return []
        const isMirror = mirror === undefined || mirror === `${provider}/${name}`
        return [[name, isMirror ? options : { ...options, mirrors: [mirror] }]]
      })
      return filled.length > 0 ? [[provider, Object.fromEntries(filled)]] : []
    }),
  )
  noteDefault(providers, current, chosen, picBed)
  return { providers, default: chosen }
}

/** PicGo reads `uploader` first and keeps `current` for old versions. */
function readCurrent(picBed: Old): string | undefined {
  for (const name of ['uploader', 'current']) {
    const value = picBed.get(name)
    if (textOf(value) !== undefined) return textOf(value)
    if (value !== undefined && value !== '') picBed.note(name, 'was ignored: it is not text')
  }
  return undefined
}

/** The current type comes first, so that its destinations keep their names if two types share a provider. */
function listTypes(picBed: Old, uploader: Old, current: string | undefined): Set<string> {
  const fromPicBed = Object.entries(picBed.all).filter(
    ([type, value]) => !NO_UPLOADERS.has(type) && (isRecord(value) || UPLOADERS.has(type)),
  )
  return new Set([
    ...(current === undefined ? [] : [current]),
    ...Object.keys(uploader.all),
    ...fromPicBed.map(([type]) => type),
  ])
}

function noteUnsupported(type: string, saved: readonly Saved[], note: OnNote): void {
  const path = saved[0]?.path.replace(/\.configList\[.*$/s, '')
  if (path === undefined) return
  const equivalent = EQUIVALENTS.get(type)
  const reason = equivalent
    ? `its options can't be imported. Configure the provider "${equivalent}" instead`
    : (WITHOUT_PROVIDER.get(type) ?? `there is no provider for "${type}"`)
  note(path, `was skipped: ${reason}`)
}

/** PicList's second uploader stores a copy of every file. If the copy fails, the upload still succeeds. */
function readMirror(
  picBed: Old,
  settings: Old,
  note: OnNote,
  add: (type: string, one: Saved) => string | undefined,
): string | undefined {
  if (settings.get('enableSecondUploader') !== true) return undefined
  const type = picBed.text('secondUploader')
  const config = picBed.section('secondUploaderConfig')
  if (type === undefined || !UPLOADERS.has(type) || Object.keys(config.all).length === 0) {
    const reason =
      type === undefined ? 'no second uploader is chosen' : `nothing of "${type}" can be used here`
    settings.note('enableSecondUploader', `was ignored: ${reason}`)
    return undefined
  }
  const [one] = readItem(config.all, config.path, note)
  const mirror = one && add(type, one)
  if (settings.get('secondPicBedMode') === 'seperate')
    settings.note('secondPicBedMode', 'was ignored: copies get the same image changes as the original')
  return mirror
}

function isFilled({ options }: Saved): boolean {
  return Object.values(options).some(
    value => textOf(value) !== undefined || (typeof value !== 'string' && Boolean(value)),
  )
}

function noteDefault(
  providers: Record<string, Json>,
  current: string | undefined,
  chosen: string | undefined,
  picBed: Old,
): void {
  const ids = Object.entries(providers).flatMap(([provider, configurations]) =>
    Object.keys(configurations).map(name => `${provider}/${name}`),
  )
  if (ids.length === 0) picBed.note('', 'has no destination that can be imported')
  if (current !== undefined && !ids.includes(chosen ?? '')) {
    const equivalent = EQUIVALENTS.get(current)
    const reason = UPLOADERS.has(current)
      ? 'which has no usable settings. Complete them, or'
      : equivalent
        ? `whose options can't be imported. Configure the provider "${equivalent}", or`
        : 'for which there is no provider here:'
    picBed.note('uploader', `is "${current}", ${reason} choose another uploader`)
  }
  if (current === undefined && ids.length > 1)
    picBed.note(
      'uploader',
      'is missing. Set "default" to one of the destinations, or choose an uploader in PicGo',
    )
}
