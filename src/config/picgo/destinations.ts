import { canonicalType } from '../../providers/registry.ts'
import { isRecord, type Json } from '../json.ts'
import { compact, member, type OnNote, sectionOf, text } from './json.ts'
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

/** Gets the id of a destination (`provider/configName`) and its path in the old file. */
export type OnDestination = (id: string, path: string) => void

interface TranslationContext {
  templates: Map<string, string>
  pictures: Pictures
  settings: Json
  note: OnNote
  found: OnDestination
}

/** Destinations of one provider by name; undefined for a name that is only reserved. */
type SavedByName = Map<string, Json | undefined>

/**
 * All destinations by provider and name. `default` is the current uploader even if it could not be imported, because files
 * must not be stored at a destination that the user has not chosen.
 */
export function translateDestinations(
  picBed: Json,
  uploader: Json,
  context: TranslationContext,
): { providers: Record<string, Json>; default: string | undefined } {
  const { note } = context
  const current = readCurrent(picBed, note)
  const all = new Map<string, SavedByName>()
  const ids = new Map<string, string>()
  let chosen: string | undefined
  for (const type of listTypes(picBed, uploader, current)) {
    const { saved, active } = readSaved(type, picBed, uploader, note)
    const provider = canonicalType(type)
    const names: SavedByName = all.get(provider) ?? new Map()
    all.set(provider, names)
    if (!UPLOADERS.has(type)) noteUnsupported(type, saved, note)
    const carried = UPLOADERS.has(type) ? saved : []
    const activeName = addAll(type, carried, active, { ...context, provider, names, ids })
    if (type === current) chosen = `${provider}/${activeName ?? reserve(active?.name ?? 'Default', names)}`
    else if (saved.length > 1 && activeName !== undefined && activeName !== 'Default')
      note(
        `uploader.${type}.defaultId`,
        `was ignored: a request for "${type}" must specify configName "${activeName}"`,
      )
  }
  addMirrors(picBed, all, { ...context, ids })
  const providers = collect(all)
  noteDefault(providers, current, chosen, note)
  return { providers, default: chosen }
}

/** PicGo reads `uploader` first and keeps `current` for old versions. */
function readCurrent(picBed: Json, note: OnNote): string | undefined {
  for (const name of ['uploader', 'current']) {
    const value = member(picBed, name)
    if (text(value) !== undefined) return text(value)
    if (value !== undefined && value !== '') note(`picBed.${name}`, 'was ignored: it is not text')
  }
  return undefined
}

/** The current type comes first, so that its destinations keep their names if two types share a provider. */
function listTypes(picBed: Json, uploader: Json, current: string | undefined): Set<string> {
  const fromPicBed = Object.keys(picBed).filter(
    type => !NO_UPLOADERS.has(type) && (isRecord(picBed[type]) || UPLOADERS.has(type)),
  )
  return new Set([...(current === undefined ? [] : [current]), ...Object.keys(uploader), ...fromPicBed])
}

function noteUnsupported(type: string, saved: Saved[], note: OnNote): void {
  const path = saved[0]?.path.replace(/\.configList\[.*$/s, '')
  if (path === undefined) return
  const equivalent = EQUIVALENTS.get(type)
  const reason = equivalent
    ? `its options can't be imported. Configure the provider "${equivalent}" instead`
    : (WITHOUT_PROVIDER.get(type) ?? `there is no provider for "${type}"`)
  note(path, `was skipped: ${reason}`)
}

interface ProviderContext extends TranslationContext {
  provider: string
  names: SavedByName
  /** Destinations by uploader type and `_id`. */
  ids: Map<string, string>
}

/** Adds the destinations under unique names. Returns the name of the active one, if it was added. */
function addAll(
  type: string,
  saved: Saved[],
  active: Saved | undefined,
  { provider, names, ids, templates, pictures, note, found }: ProviderContext,
): string | undefined {
  let activeName: string | undefined
  for (const one of saved) {
    const options = translateOptions(type, one, note)
    if (options === undefined) continue
    const name = reserve(one.name, names)
    if (name !== one.name) note(one.path, `is called "${name}" here, because "${one.name}" is already in use`)
    const keyTemplate = one.id === undefined ? undefined : templates.get(one.id)
    names.set(name, compact({ ...options, keyTemplate, images: pictures.own(type, one.id) }))
    found(`${provider}/${name}`, one.path)
    if (one.id !== undefined) ids.set(`${type}/${one.id}`, `${provider}/${name}`)
    if (one === active) activeName = name
  }
  return activeName
}

/** PicList's second uploader stores a copy of every file. If the copy fails, the upload still succeeds. */
function addMirrors(
  picBed: Json,
  all: Map<string, SavedByName>,
  context: TranslationContext & Pick<ProviderContext, 'ids'>,
): void {
  const { settings, note, ids } = context
  if (settings.enableSecondUploader !== true) return
  const type = text(picBed.secondUploader)
  const config = sectionOf(picBed, 'secondUploaderConfig', 'picBed.secondUploaderConfig', note)
  if (type === undefined || !UPLOADERS.has(type) || Object.keys(config).length === 0) {
    const reason =
      type === undefined ? 'no second uploader is chosen' : `nothing of "${type}" can be used here`
    note('settings.enableSecondUploader', `was ignored: ${reason}`)
    return
  }
  const mirror = ids.get(`${type}/${text(config._id)}`) ?? addSecond(type, config, all, context)
  for (const [provider, names] of all) {
    for (const [name, options] of names)
      if (options && `${provider}/${name}` !== mirror && mirror !== undefined)
        names.set(name, { ...options, mirrors: [mirror] })
  }
  if (settings.secondPicBedMode === 'seperate')
    note('settings.secondPicBedMode', 'was ignored: copies get the same image changes as the original')
}

/** Adds a second uploader that is not in any list. */
function addSecond(
  type: string,
  config: Json,
  all: Map<string, SavedByName>,
  context: TranslationContext & Pick<ProviderContext, 'ids'>,
): string | undefined {
  const provider = canonicalType(type)
  const names: SavedByName = all.get(provider) ?? new Map()
  all.set(provider, names)
  const [one] = readItem(config, 'picBed.secondUploaderConfig', context.note)
  const name = addAll(type, one ? [one] : [], one, { ...context, provider, names })
  return name === undefined ? undefined : `${provider}/${name}`
}

function translateOptions(type: string, { options, path }: Saved, note: OnNote): Json | undefined {
  const isFilled = Object.values(options).some(
    value => text(value) !== undefined || (typeof value !== 'string' && Boolean(value)),
  )
  if (isFilled) return type === 'local' ? translateLocal(options, path, note) : options
  note(path, 'was skipped: none of its options is set')
  return undefined
}

/** Converts PicList's `local` uploader; undefined, with a note, if it has no directory. */
function translateLocal(options: Json, path: string, note: OnNote): Json | undefined {
  const directory = text(options.path)
  if (directory === undefined) {
    note(`${path}.path`, 'is not set, so the destination was skipped')
    return undefined
  }
  const urlPrefix = joinAddress(text(options.customUrl), text(options.webPath))
  if (urlPrefix !== undefined) return { directory, urlPrefix }
  note(`${path}.customUrl`, 'is not a URL, so this server serves the files under "/files/"')
  return { directory, serve: true }
}

/** Builds the URL as PicList does: `customUrl`, a slash, and the percent-encoded segments of `webPath`. */
function joinAddress(customUrl: string | undefined, webPath = ''): string | undefined {
  if (customUrl === undefined || !/^https?:\/\/[^?#]+$/i.test(customUrl) || !URL.canParse(customUrl))
    return undefined
  const segments = webPath
    .toWellFormed()
    .split(/[\\/]+/)
    .filter(segment => segment !== '')
  return [customUrl.replace(/(?<!\/)\/+$/, ''), ...segments.map(encodeURIComponent)].join('/')
}

/** Reserves the name, or the first free one with a suffix `-2`, `-3`… */
function reserve(name: string, names: SavedByName): string {
  let free = name
  for (let number = 2; names.has(free); number++) free = `${name}-${number}`
  names.set(free, undefined)
  return free
}

function collect(all: Map<string, SavedByName>): Record<string, Json> {
  const providers: [string, Json][] = []
  for (const [provider, names] of all) {
    const filled = [...names].filter(([, options]) => options !== undefined)
    if (filled.length > 0) providers.push([provider, Object.fromEntries(filled)])
  }
  return Object.fromEntries(providers)
}

function noteDefault(
  providers: Record<string, Json>,
  current: string | undefined,
  chosen: string | undefined,
  note: OnNote,
): void {
  const names = Object.entries(providers).flatMap(([provider, configurations]) =>
    Object.keys(configurations).map(name => `${provider}/${name}`),
  )
  if (names.length === 0) note('picBed', 'has no destination that can be imported')
  if (current !== undefined && !names.includes(chosen ?? '')) {
    const equivalent = EQUIVALENTS.get(current)
    const reason = UPLOADERS.has(current)
      ? 'which has no usable settings. Complete them, or'
      : equivalent
        ? `whose options can't be imported. Configure the provider "${equivalent}", or`
        : 'for which there is no provider here:'
    note('picBed.uploader', `is "${current}", ${reason} choose another uploader`)
  }
  if (current === undefined && names.length > 1)
    note(
      'picBed.uploader',
      'is missing. Set "default" to one of the destinations, or choose an uploader in PicGo',
    )
}
