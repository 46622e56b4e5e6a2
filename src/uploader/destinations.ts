import { UploadError } from '../errors.ts'
import type { Slots } from '../flow/slots.ts'
import type { Outgoing } from '../http/proxy/outgoing.ts'
import type { KeyTemplate } from '../payload/object-key.ts'
import type { PictureOptions } from '../pictures/options.ts'
import type { OpenTarget, Provider } from '../providers/contract.ts'
import { canonicalType, PROVIDER_TYPES } from '../providers/registry.ts'
import type { OnConflict } from '../store/claims.ts'
import type { ExpiryRule } from './expiry.ts'
import type { RewriteRule } from './url-rewrite.ts'

/** The name of a destination: the type of its provider and its own name. */
export interface DestinationName {
  readonly type: string
  readonly name: string
}

/** A configured destination that can't be used. */
export interface LeftOut extends DestinationName {
  readonly reason: string
}

/** A named provider with options, ready to be used. */
export interface Destination extends DestinationName {
  /** `provider/configName`. */
  readonly id: string
  readonly target: OpenTarget
  /** Where payloads for it are spooled. Not there if it has a fallback, because its disk may have failed. Undefined: anywhere. */
  readonly spool: OpenTarget['spool']
  /** Location of its objects, up to where the object key begins: `place` of `Target`. */
  readonly location: string
  /** Outbound proxies. Undefined: none. */
  readonly outgoing?: Outgoing | undefined
  readonly keyTemplate: KeyTemplate
  /** Whether its keys contain the folder that a request sets. */
  readonly takesPath: boolean
  /** Whether object keys change with the bytes, so that a served file may be cached permanently. See `Wanted`. */
  readonly isContentKey: boolean
  readonly onConflict: OnConflict
  /** Whether an existing file with the same bytes is used instead of a new one. */
  readonly dedupe: boolean
  /** Which clients this server redirects to presigned URLs. Undefined: URLs lead to the destination itself. */
  readonly redirects?: 'anyone' | 'callers' | undefined
  readonly rewriteUrl: (url: string) => string
  /** `provider/configName` of the destination that is used when this one fails. */
  readonly fallback: string | undefined
  /** Destinations that get a copy. */
  readonly mirrors: readonly Mirror[]
  /** When files expire. Undefined: never. */
  readonly expiry?: ExpiryRule | undefined
  /** How images are processed. Undefined: not at all. */
  readonly pictures?: PictureOptions | undefined
  /** For targets that allow one put at a time. */
  readonly queue: Pick<Slots, 'run'> | undefined
}

export interface Mirror {
  /** `provider/configName`. */
  readonly destination: string
  /** Whether the upload fails if this copy does. */
  readonly required: boolean
}

/** A destination as it is configured. */
export interface DestinationSpec extends DestinationName {
  readonly provider: Provider
  /** The entry of the setting `plugins` that has the provider. Undefined: a built-in provider. */
  readonly plugin?: string | undefined
  readonly options: Record<string, unknown>
  readonly common: {
    readonly keyTemplate?: string | undefined
    readonly onConflict?: OnConflict | undefined
    readonly dedupe?: boolean
    readonly link?: 'direct' | 'redirect'
    readonly linkAccess?: 'anyone' | 'callers'
    readonly urlRewrite?: readonly RewriteRule[]
    readonly fallback?: string | undefined
    readonly mirrors?: readonly Mirror[]
    readonly expiry?: ExpiryRule | undefined
    readonly images?: PictureOptions | undefined
    readonly proxy?: string | undefined
    readonly caFile?: string | undefined
    readonly insecureTls?: boolean
  }
}

/** The destination that a request specifies. Empty values count as absent. */
export interface DestinationChoice {
  picbed?: string | undefined
  configName?: string | undefined
}

/** A choice in either spelling. */
export interface ChoiceAsSent extends DestinationChoice {
  /** `provider` or `provider/configName`. */
  destination?: string | undefined
}

/** The name clients send for "whatever this provider uses by default" (PicList does it always). */
const DEFAULT_NAME = 'Default'

/** `provider/configName`. */
export function idOf({ type, name }: DestinationName): string {
  return `${type}/${name}`
}

/** Whether a list such as `["s3/screens", "local"]` covers a destination; undefined covers all. */
export function isCovered(named: DestinationName, list: readonly string[] | undefined): boolean {
  return (
    list === undefined ||
    list.some(
      entry => splitId(entry).type === named.type && [undefined, named.name].includes(splitId(entry).name),
    )
  )
}

/** Reads `provider` or `provider/configName`. */
export function splitId(id: string): { type: string; name: string | undefined } {
  const slash = id.indexOf('/')
  if (slash < 0) return { type: canonicalType(id), name: undefined }
  return { type: canonicalType(id.slice(0, slash)), name: id.slice(slash + 1) }
}

/**
 * The choice in the spelling of PicGo and PicList, which every server understands.
 *
 * @throws UploadError `invalid_request` for a malformed `destination`, and for one that the other spelling contradicts
 */
export function readChoice({ destination, picbed, configName }: ChoiceAsSent): DestinationChoice {
  if (!destination) return { picbed, configName }
  if (!/^[^/]+(?:\/[^/].*)?$/s.test(destination))
    throw new UploadError('invalid_request', '"destination" must be "provider" or "provider/configName".')
  const { type, name } = splitId(destination)
  const isSame = (!picbed || canonicalType(picbed) === type) && (!configName || !name || configName === name)
  if (isSame) return { picbed: type, configName: name ?? configName }
  const other = [picbed && `picbed "${picbed}"`, configName && `configName "${configName}"`]
  throw new UploadError(
    'invalid_request',
    `Destination "${destination}" contradicts ${other.filter(Boolean).join(' and ')}. Send one of the two spellings.`,
  )
}

/** What a request can choose from. */
export interface Choices<T extends DestinationName> {
  readonly destinations: readonly T[]
  /** The setting `default`. It may be missing if there is only one destination. */
  readonly defaultId?: string | undefined
  /** What can't be used: to choose one is an error, so that no other destination is used instead. */
  readonly leftOut?: readonly LeftOut[]
}

/**
 * Chooses the destination of one request. An invalid choice never selects another destination.
 *
 * @param allowed destinations that the client may use; messages do not name the others
 * @throws UploadError `unknown_destination`, `ambiguous_destination`, `destination_forbidden`
 */
export function chooseDestination<T extends DestinationName>(
  { destinations: all, defaultId, leftOut = [] }: Choices<T>,
  choice: DestinationChoice = {},
  allowed?: readonly string[],
): T {
  const usable = () => listIds(all.filter(one => isCovered(one, allowed)))
  const found = find<T | LeftOut>(leftOut.length > 0 ? [...all, ...leftOut] : all, defaultId, choice, usable)
  if (!isCovered(found, allowed))
    throw new UploadError(
      'destination_forbidden',
      `This upload key may not use ${idOf(found)}. Available: ${usable()}.`,
    )
  const skipped = leftOut.find(one => one === found)
  if (skipped)
    fail(`${idOf(found)} was skipped because it can't be used: ${skipped.reason}. Available: ${usable()}.`)
  // It is one of `all`.
  return found as T
}

function find<T extends DestinationName>(
  all: readonly T[],
  defaultId: string | undefined,
  { picbed, configName }: DestinationChoice,
  usable: () => string,
): T {
  const unknown = (message: string) => fail(`${message} Available: ${usable()}.`)
  const preset = defaultId === undefined ? undefined : splitId(defaultId)
  const onlyType = all.every(one => one.type === all[0]?.type) ? all[0]?.type : undefined
  const type = picbed ? canonicalType(picbed) : (preset?.type ?? onlyType)
  const mine = all.filter(one => one.type === type)
  if (picbed && mine.length === 0) {
    const why = PROVIDER_TYPES.includes(canonicalType(picbed)) ? 'has no destination here' : 'does not exist'
    unknown(`Provider "${picbed}" ${why}.`)
  }
  const exact = configName ? mine.find(one => one.name === configName) : undefined
  if (exact) return exact
  if (!configName || configName === DEFAULT_NAME)
    return findStandard(mine, preset?.type === type ? preset?.name : undefined) ?? unknown(NO_DEFAULT)
  if (picbed) return unknown(`${picbed} has no destination "${configName}".`)
  const [named, ...more] = all.filter(one => one.name === configName)
  if (named && more.length > 0)
    throw ambiguous(`Several providers have a destination "${configName}"`, [named, ...more])
  return named ?? unknown(`No provider has a destination "${configName}".`)
}

const NO_DEFAULT = 'The setting "default" does not match a destination.'

/**
 * The destination of one provider that is used if none is named: the one of the setting `default`, else `Default`, else the only
 * one. If the setting is misspelt, no other destination may be used instead.
 */
function findStandard<T extends DestinationName>(
  mine: readonly T[],
  preset: string | undefined,
): T | undefined {
  if (preset !== undefined || mine.length === 0) return mine.find(one => one.name === preset)
  const chosen = mine.find(one => one.name === DEFAULT_NAME) ?? (mine.length === 1 ? mine[0] : undefined)
  if (chosen) return chosen
  throw ambiguous(`${mine[0]?.type} has several destinations, and none is its default`, mine)
}

function ambiguous(what: string, all: readonly DestinationName[]): UploadError {
  const [first] = all
  const example = first && `, such as "${idOf(first)}"`
  return new UploadError(
    'ambiguous_destination',
    `${what}: ${listIds(all)}. Specify one by its full name${example}.`,
  )
}

function fail(message: string): never {
  throw new UploadError('unknown_destination', message)
}

function listIds(list: readonly DestinationName[]): string {
  return list.map(one => `"${idOf(one)}"`).join(', ') || 'none'
}

/** @throws UploadError `path_forbidden` for a destination whose object keys contain no `{path}` */
export function assertTakesPath(destination: Destination): void {
  if (destination.takesPath) return
  throw new UploadError(
    'path_forbidden',
    `Requests can't choose a folder at ${destination.id}: its "keyTemplate" needs {path}, as in "{path}/{filename}-{sha256-8}{extname}".`,
  )
}

/** The destination of an ID in the configuration, which has been checked. */
export function findDestination(destinations: readonly Destination[], id: string): Destination {
  const { type, name } = splitId(id)
  const found = destinations.find(one => one.type === type && one.name === name)
  if (!found) throw new Error(`the configuration has no destination ${id}`)
  return found
}

/** IDs of the destinations that store files of this one: itself, its mirrors and its fallback. */
export function destinationIdsOf(destination: Destination): string[] {
  const { id, fallback, mirrors } = destination
  const copies = [...mirrors.map(mirror => mirror.destination), ...(fallback === undefined ? [] : [fallback])]
  const ids = copies.map(splitId).map(({ type, name = '' }) => idOf({ type, name }))
  return [...new Set([id, ...ids])]
}

/** An object at a location. */
interface At {
  /** `provider/configName`. */
  readonly destination: string
  readonly location: string
  readonly key: string
}

/**
 * The destination that reaches an object now, with the object key there: the options of a destination may have changed since the
 * object was stored. Undefined if none does.
 */
export function reach(
  { destination, location, key }: At,
  destinations: readonly Destination[],
): { readonly destination: Destination; readonly key: string } | undefined {
  const path = location + key
  const reaches = (one: Destination) => path.startsWith(one.location) && path !== one.location
  const found = destinations.find(one => one.id === destination && reaches(one)) ?? destinations.find(reaches)
  return found && { destination: found, key: path.slice(found.location.length) }
}

/** Removes an object that `reach` has found, in turn with the puts of a destination that allows one at a time. */
export async function removeKey(
  { target, queue }: Destination,
  key: string,
  signal: AbortSignal,
): Promise<void> {
  const remove = async () => target.remove?.(key, signal)
  await (queue ? queue.run(remove, signal) : remove())
}
