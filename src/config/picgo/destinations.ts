import { canonicalType } from '../../providers/registry.ts'
import { isRecord, type Json } from '../json.ts'
import { compact, member, type Note, section, text } from './json.ts'
import type { Pictures } from './pictures.ts'
import { readItem, readSaved, type Saved } from './saved.ts'

/** Uploaders of PicGo and PicList, and of S3 plugins, whose options a provider of ours takes. */
const UPLOADERS = new Set([
  ...['aliyun', 'tcyun', 'qiniu', 'upyun', 'github', 'gitee', 'imgur', 'smms', 'local', 'piclist'],
  ...['webdavplist', 'sftpplist', 'lskyplist', 'aws-s3', 'aws-s3-plist', 'web-uploader', 'advancedplist'],
])

const WITHOUT_PROVIDER = new Map([
  ['telegraphplist', 'Telegraph takes no uploads any more'],
  ['picgo-cloud', 'PicGo Cloud takes uploads from PicGo only'],
])

/** Members of `picBed` that are no uploaders. */
const NO_UPLOADERS = new Set([
  ...['uploader', 'current', 'transformer', 'proxy', 'list'],
  ...['secondUploader', 'secondUploaderId', 'secondUploaderConfig'],
])

/** Is told the id of a destination (`provider/configName`) and its path in the old file. */
export type Found = (id: string, path: string) => void

interface Context {
  templates: Map<string, string>
  pictures: Pictures
  settings: Json
  note: Note
  found: Found
}

/** Configurations of one provider by name; undefined for a name that is only reserved. */
type Names = Map<string, Json | undefined>

/**
 * All saved configurations by provider and name. `default` names the current uploader even when nothing of it could be
 * carried over: files must not go to another destination than the one that was chosen.
 */
export function translateDestinations(
  picBed: Json,
  uploader: Json,
  context: Context,
): { providers: Record<string, Json>; default: string | undefined } {
  const { note } = context
  const current = readCurrent(picBed, note)
  const all = new Map<string, Names>()
  const ids = new Map<string, string>()
  let chosen: string | undefined
  for (const type of listTypes(picBed, uploader, current)) {
    const { saved, active } = readSaved(type, picBed, uploader, note)
    const provider = canonicalType(type)
    const names: Names = all.get(provider) ?? new Map()
    all.set(provider, names)
    if (!UPLOADERS.has(type)) noteUnsupported(type, saved, note)
    const carried = UPLOADERS.has(type) ? saved : []
    const activeName = addAll(type, carried, active, { ...context, provider, names, ids })
    if (type === current) chosen = `${provider}/${activeName ?? reserve(active?.name ?? 'Default', names)}`
    else if (saved.length > 1 && activeName !== undefined && activeName !== 'Default')
      note(`uploader.${type}.defaultId`, `was left out: a request for "${type}" has to name "${activeName}"`)
  }
  addMirrors(picBed, all, { ...context, ids })
  const providers = collect(all)
  noteDefault(providers, current, chosen, note)
  return { providers, default: chosen }
}

/** PicGo looks at `uploader` first and keeps `current` for old versions. */
function readCurrent(picBed: Json, note: Note): string | undefined {
  for (const name of ['uploader', 'current']) {
    const value = member(picBed, name)
    if (text(value) !== undefined) return text(value)
    if (value !== undefined && value !== '') note(`picBed.${name}`, 'was left out: it is no text')
  }
  return undefined
}

/** The current one comes first, so that its configurations keep their names where two types share a provider. */
function listTypes(picBed: Json, uploader: Json, current: string | undefined): Set<string> {
  const fromPicBed = Object.keys(picBed).filter(
    type => !NO_UPLOADERS.has(type) && (isRecord(picBed[type]) || UPLOADERS.has(type)),
  )
  return new Set([...(current === undefined ? [] : [current]), ...Object.keys(uploader), ...fromPicBed])
}

function noteUnsupported(type: string, saved: Saved[], note: Note): void {
  const path = saved[0]?.path.replace(/\.configList\[.*$/s, '')
  if (path === undefined) return
  note(path, `was left out: ${WITHOUT_PROVIDER.get(type) ?? `there is no provider for "${type}"`}`)
}

interface Target extends Context {
  provider: string
  names: Names
  /** Destinations by the type and the `_id` of their configuration. */
  ids: Map<string, string>
}

/** Adds the configurations under unique names and answers the name of the active one, if it is among them. */
function addAll(
  type: string,
  saved: Saved[],
  active: Saved | undefined,
  { provider, names, ids, templates, pictures, note, found }: Target,
): string | undefined {
  let activeName: string | undefined
  for (const one of saved) {
    const options = translateOptions(type, one, note)
    if (options === undefined) continue
    const name = reserve(one.name, names)
    if (name !== one.name) note(one.path, `is called "${name}" here, since "${one.name}" is taken`)
    const keyTemplate = one.id === undefined ? undefined : templates.get(one.id)
    names.set(name, compact({ ...options, keyTemplate, pictures: pictures.own(type, one.id) }))
    found(`${provider}/${name}`, one.path)
    if (one.id !== undefined) ids.set(`${type}/${one.id}`, `${provider}/${name}`)
    if (one === active) activeName = name
  }
  return activeName
}

/** PicList's second uploader gets a copy of what every other one stores, and the upload does not fail when that does. */
function addMirrors(picBed: Json, all: Map<string, Names>, context: Context & Pick<Target, 'ids'>): void {
  const { settings, note, ids } = context
  if (settings.enableSecondUploader !== true) return
  const type = text(picBed.secondUploader)
  const config = section(picBed, 'secondUploaderConfig', 'picBed.secondUploaderConfig', note)
  if (type === undefined || !UPLOADERS.has(type) || Object.keys(config).length === 0) {
    const reason =
      type === undefined ? 'no second uploader is chosen' : `nothing of "${type}" can be used here`
    note('settings.enableSecondUploader', `was left out: ${reason}`)
    return
  }
  const mirror = ids.get(`${type}/${text(config._id)}`) ?? addSecond(type, config, all, context)
  for (const [provider, names] of all) {
    for (const [name, options] of names)
      if (options && `${provider}/${name}` !== mirror && mirror !== undefined)
        names.set(name, { ...options, mirrors: [mirror] })
  }
  if (settings.secondPicBedMode === 'seperate')
    note('settings.secondPicBedMode', 'was left out: copies are changed as the first destination says')
}

/** One that stands in no list. */
function addSecond(
  type: string,
  config: Json,
  all: Map<string, Names>,
  context: Context & Pick<Target, 'ids'>,
): string | undefined {
  const provider = canonicalType(type)
  const names: Names = all.get(provider) ?? new Map()
  all.set(provider, names)
  const [one] = readItem(config, 'picBed.secondUploaderConfig', context.note)
  const name = addAll(type, one ? [one] : [], one, { ...context, provider, names })
  return name === undefined ? undefined : `${provider}/${name}`
}

function translateOptions(type: string, { options, path }: Saved, note: Note): Json | undefined {
  const isFilled = Object.values(options).some(
    value => text(value) !== undefined || (typeof value !== 'string' && Boolean(value)),
  )
  if (isFilled) return type === 'local' ? translateLocal(options, path, note) : options
  note(path, 'was left out: none of its options is filled in')
  return undefined
}

/** PicList's `local` uploader in our words; undefined, with a note, when it has no directory. */
function translateLocal(options: Json, path: string, note: Note): Json | undefined {
  const directory = text(options.path)
  if (directory === undefined) {
    note(`${path}.path`, 'is missing, so the configuration was left out')
    return undefined
  }
  const urlPrefix = joinAddress(text(options.customUrl), text(options.webPath))
  if (urlPrefix !== undefined) return { directory, urlPrefix }
  note(`${path}.customUrl`, 'holds no web address, so this server hands the files out under "/files/" itself')
  return { directory, serve: true }
}

/** As PicList builds it: `customUrl`, a slash, and the segments of `webPath` percent-encoded. */
function joinAddress(customUrl: string | undefined, webPath = ''): string | undefined {
  if (customUrl === undefined || !/^https?:\/\/[^?#]+$/i.test(customUrl) || !URL.canParse(customUrl))
    return undefined
  const segments = webPath
    .toWellFormed()
    .split(/[\\/]+/)
    .filter(segment => segment !== '')
  return [customUrl.replace(/(?<!\/)\/+$/, ''), ...segments.map(encodeURIComponent)].join('/')
}

/** Takes the name, or the first of `-2`, `-3`… that is free. */
function reserve(name: string, names: Names): string {
  let free = name
  for (let number = 2; names.has(free); number++) free = `${name}-${number}`
  names.set(free, undefined)
  return free
}

function collect(all: Map<string, Names>): Record<string, Json> {
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
  note: Note,
): void {
  const names = Object.entries(providers).flatMap(([provider, configurations]) =>
    Object.keys(configurations).map(name => `${provider}/${name}`),
  )
  if (names.length === 0) note('picBed', 'holds no destination that can be used here')
  if (current !== undefined && !names.includes(chosen ?? '')) {
    const reason = UPLOADERS.has(current)
      ? 'of which nothing here can be used: fill it in, or'
      : 'for which there is no provider:'
    note('picBed.uploader', `names "${current}", ${reason} choose another uploader`)
  }
  if (current === undefined && names.length > 1)
    note(
      'picBed.uploader',
      'is missing: set "default" to one of the destinations, or choose an uploader there',
    )
}
