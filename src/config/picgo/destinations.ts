import { isDeepStrictEqual } from 'node:util'
import { isRecord, type Json } from '../../members.ts'
import { canonicalType } from '../../providers/registry.ts'
import { textOf } from '../../providers/shared/picgo-options.ts'
import { configName } from '../values.ts'
import type { Old, OnNote } from './old.ts'

/** Uploaders of PicGo and PicList, and of S3 plugins, whose options one of our providers can read. */
const UPLOADERS = new Set(
  (
    'aliyun tcyun qiniu upyun github imgur smms local piclist ' +
    'webdavplist sftpplist lskyplist aws-s3 aws-s3-plist web-uploader advancedplist'
  ).split(' '),
)

/** Uploaders of plugins whose options are not read, and the provider that stores at the same destination. */
const EQUIVALENTS = [
  ['lankong', 'lsky'],
  ['minio', 's3'],
  ['alist', 'openlist'],
  ['githubPlus', 'github'],
] as const

/** Why other uploaders are skipped. */
const SKIPPED = new Map([
  ['gitee', 'Gitee blocks requests from other websites, so images there do not show'],
  ['telegraphplist', 'Telegraph no longer accepts uploads'],
  ['picgo-cloud', 'PicGo Cloud accepts uploads only from PicGo'],
  ...EQUIVALENTS.map(
    ([type, provider]) =>
      [type, `its options can't be imported. Configure the provider "${provider}" instead`] as const,
  ),
])

/** Members of `picBed` that are not uploaders. */
const NO_UPLOADERS = new Set(
  'uploader current transformer proxy list secondUploader secondUploaderId secondUploaderConfig'.split(' '),
)

/** One configuration of an uploader in PicGo, which becomes a destination. */
export interface Saved {
  /** Path in the old file. */
  readonly path: string
  readonly name: string
  readonly id: string | undefined
  /** Options of the uploader. */
  readonly options: Json
}

export interface Destinations {
  readonly providers: Record<string, Record<string, Json>>
  /** The current uploader even if it could not be imported: files must not be stored where the user did not choose. */
  readonly default: string | undefined
  /** Path of each destination in the old file, by its id. */
  readonly places: ReadonlyMap<string, string>
}

/** Makes the options of a provider of those of an uploader. */
export type Convert = (type: string, name: string, one: Saved) => Promise<Json>

export async function readDestinations(file: Old, note: OnNote, convert: Convert): Promise<Destinations> {
  const [picBed, uploader] = [file.section('picBed'), file.section('uploader')]
  const providers: Record<string, Record<string, Json>> = {}
  const places = new Map<string, string>()
  /** Destinations by uploader type and `_id`. */
  const ids = new Map<string, string>()
  const taken = new Set<string>()

  /** Reserves a name, or the first free one with a suffix `-2`, `-3`… */
  function reserve(provider: string, name: string): string {
    let free = name
    for (let number = 2; taken.has(`${provider}/${free}`); number++) free = `${name}-${number}`
    taken.add(`${provider}/${free}`)
    return free
  }

  /** @returns the id of the destination; undefined, with a note, if none of its options is set */
  async function add(type: string, one: Saved): Promise<string | undefined> {
    if (!isFilled(one)) return void note(one.path, 'was skipped: none of its options is set')
    const provider = canonicalType(type)
    const name = reserve(provider, one.name)
    if (name !== one.name) note(one.path, `is called "${name}" here, because "${one.name}" is already in use`)
    const id = `${provider}/${name}`
    places.set(id, one.path)
    if (one.id !== undefined) ids.set(`${type}/${one.id}`, id)
    providers[provider] = { ...providers[provider], [name]: await convert(type, name, one) }
    return id
  }

  // PicGo reads `uploader` first and keeps `current` for old versions.
  const current = picBed.text('uploader') ?? picBed.text('current')
  let chosen: string | undefined
  for (const type of listTypes(picBed, uploader, current)) {
    const { saved, active } = readSaved(type, picBed, uploader)
    const path = saved[0]?.path.replace(/\.configList\[.*$/s, '')
    if (!UPLOADERS.has(type) && path !== undefined) note(path, `was skipped: ${reasonOf(type)}`)
    let id: string | undefined
    for (const one of UPLOADERS.has(type) ? saved : []) {
      const added = await add(type, one)
      if (one === active) id = added
    }
    const provider = canonicalType(type)
    if (type === current) chosen = id ?? `${provider}/${reserve(provider, active?.name ?? 'Default')}`
    else if (saved.length > 1 && id !== undefined && id !== `${provider}/Default`)
      uploader.note(
        `${type}.defaultId`,
        `was ignored: a request for "${type}" must specify configName "${id.slice(provider.length + 1)}"`,
      )
  }

  const second = readSecond(picBed, file.section('settings'))
  const mirror =
    second && (ids.get(`${second.type}/${second.one.id}`) ?? (await add(second.type, second.one)))
  for (const [provider, named] of Object.entries(providers))
    for (const [name, options] of Object.entries(named))
      if (mirror !== undefined && mirror !== `${provider}/${name}`) options['mirrors'] = [mirror]

  noteDefault(picBed, places, current, chosen)
  return { providers, default: chosen, places }
}

/** The current type comes first, so that its destinations keep their names if two types share a provider. */
function listTypes(picBed: Old, uploader: Old, current: string | undefined): Set<string> {
  const fromPicBed = Object.entries(picBed.all).filter(
    ([type, value]) => !NO_UPLOADERS.has(type) && (isRecord(value) || UPLOADERS.has(type)),
  )
  return new Set([current ?? [], Object.keys(uploader.all), fromPicBed.map(([type]) => type)].flat())
}

const reasonOf = (type: string) => SKIPPED.get(type) ?? `there is no provider for "${type}"`

/**
 * Reads the configurations of one uploader, and which is active. `uploader.<type>` holds all of them; `picBed.<type>` is a
 * copy of the active one, and the only one in older files.
 */
function readSaved(
  type: string,
  picBed: Old,
  uploader: Old,
): { readonly saved: readonly Saved[]; readonly active: Saved | undefined } {
  const store = uploader.section(type)
  const copy = picBed.section(type)
  const saved = store.list('configList').map(toSaved)
  if (saved.length === 0) {
    const only = Object.keys(copy.all).length > 0 ? toSaved(copy) : undefined
    return { saved: only ? [only] : [], active: only }
  }
  const byId = (id: string | undefined) => saved.find(one => id !== undefined && one.id === id)
  const named = byId(store.text('defaultId'))
  const active = named ?? byId(copy.text('_id')) ?? saved[0]
  if (named === undefined && store.text('defaultId') !== undefined)
    store.note('defaultId', `does not match a configuration, so "${active?.name}" is used`)
  const options = optionsIn(copy)
  if (Object.keys(options).length > 0 && !isDeepStrictEqual(options, active?.options))
    picBed.note(type, `was ignored: it differs from "${active?.name}" in "uploader.${type}", which is used`)
  return { saved, active }
}

/** Members that PicGo adds to the options for its own use. */
const BOOKKEEPING = new Set(['_id', '_configName', '_createdAt', '_updatedAt'])

const optionsIn = ({ all }: Old): Json =>
  Object.fromEntries(Object.entries(all).filter(([name]) => !BOOKKEEPING.has(name)))

function toSaved(old: Old): Saved {
  const text = old.text('_configName')
  const isValid = text !== undefined && configName.safeParse(text).success && !/\p{Cc}/u.test(text)
  if (!isValid && old.get('_configName') !== undefined) {
    const what = text === undefined ? 'text' : 'a valid name'
    old.note('_configName', `is not ${what}, so the destination is called "Default"`)
  }
  return { path: old.path, name: isValid ? text : 'Default', id: old.text('_id'), options: optionsIn(old) }
}

/** PicList's second uploader stores a copy of every file. If the copy fails, the upload still succeeds. */
function readSecond(picBed: Old, settings: Old): { type: string; one: Saved } | undefined {
  if (!settings.isOn('enableSecondUploader')) return undefined
  const type = picBed.text('secondUploader')
  const config = picBed.section('secondUploaderConfig')
  if (type === undefined || !UPLOADERS.has(type) || Object.keys(config.all).length === 0) {
    const reason =
      type === undefined ? 'no second uploader is chosen' : `nothing of "${type}" can be used here`
    settings.note('enableSecondUploader', `was ignored: ${reason}`)
    return undefined
  }
  if (settings.get('secondPicBedMode') === 'seperate')
    settings.note('secondPicBedMode', 'was ignored: copies get the same image changes as the original')
  return { type, one: toSaved(config) }
}

function isFilled({ options }: Saved): boolean {
  return Object.values(options).some(
    value => textOf(value) !== undefined || (typeof value !== 'string' && Boolean(value)),
  )
}

function noteDefault(
  picBed: Old,
  places: Destinations['places'],
  current: string | undefined,
  chosen: string | undefined,
): void {
  if (places.size === 0) picBed.note('', 'has no destination that can be imported')
  if (current !== undefined && !places.has(chosen ?? '')) {
    const why = UPLOADERS.has(current)
      ? 'has no usable settings. Complete them, or choose'
      : `was skipped: ${reasonOf(current)}. Choose`
    picBed.note('uploader', `is "${current}", which ${why} another uploader`)
  }
  if (current === undefined && places.size > 1)
    picBed.note(
      'uploader',
      'is missing. Set "default" to one of the destinations, or choose an uploader in PicGo',
    )
}
