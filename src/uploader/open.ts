import { describeThrown, UploadError } from '../errors.ts'
import { createNamedSlots, type NamedSlots } from '../flow/slots.ts'
import { within } from '../flow/time-limit.ts'
import type { Outgoing } from '../http/proxy/outgoing.ts'
import { parseKeyTemplate, tellsApart } from '../payload/object-key.ts'
import type { PictureOptions } from '../pictures/options.ts'
import type { OpenTarget, Provider, ProviderDeps, Target } from '../providers/contract.ts'
import { type Destination, type DestinationSpec, destinationIdsOf, idOf } from './destinations.ts'
import { createUrlRewrite } from './url-rewrite.ts'

/** Time limit for opening a destination. It loads libraries and does not connect. */
const LONGEST_MS = 20_000

/** What all destinations of a process share. */
export interface Shared extends Pick<ProviderDeps, 'ownPaths' | 'knownHosts' | 'programFolder' | 'learn'> {
  /** Shared with the destinations of earlier configurations, whose uploads may be in progress. */
  readonly putQueues?: NamedSlots | undefined
  /** How images are processed. Default for destinations that have none. */
  readonly images?: PictureOptions | undefined
  /** Outbound proxies. Default for destinations that have none. */
  readonly general?: Outgoing | undefined
}

/** Queues for targets that allow one put at a time, by their location. */
export const createPutQueues = () => createNamedSlots(1, Number.POSITIVE_INFINITY)

/** A destination whose target is open. */
interface Opened {
  readonly spec: DestinationSpec
  readonly target: OpenTarget
  readonly outgoing: Outgoing | undefined
}

/**
 * Opens every configured destination. It does not connect to them. If one can't be opened, the others are closed again.
 *
 * @param keyTemplate default for destinations that have none
 * @throws as `openTarget`, and if options of destinations do not fit their targets
 */
export async function openDestinations(
  specs: readonly DestinationSpec[],
  keyTemplate: string,
  warn: (message: string) => void,
  { putQueues = createPutQueues(), images: pictures, general, ...own }: Shared = {},
): Promise<Destination[]> {
  const opening = specs.map(async (spec): Promise<Opened> => {
    const { proxy, caFile, insecureTls } = spec.common
    const outgoing = general?.with(proxy)
    const deps = { ...own, name: spec.name, warn, caFile, insecureTls, outgoing }
    return { spec, outgoing, target: await openTarget(spec, deps) }
  })
  const settled = await Promise.allSettled(opening)
  const opened = settled.flatMap(one => (one.status === 'fulfilled' ? one.value : []))
  try {
    await Promise.all(opening) // fails with the reason of one that did
    const destinations = opened.map(one => makeDestination(one, { keyTemplate, putQueues, pictures }))
    assertRemovable(destinations)
    return destinations
  } catch (error) {
    await closeTargets(opened.map(({ target }) => target))
    throw error
  }
}

/** @throws UploadError `invalid_request` if the target does not support the options of the destination */
function makeDestination(
  { spec, target, outgoing }: Opened,
  general: Pick<Destination, 'pictures'> & { readonly keyTemplate: string; readonly putQueues: NamedSlots },
): Destination {
  const { type, name, provider, common } = spec
  const id = idOf({ type, name })
  const location = target.location ?? `${id}/`
  const template = common.keyTemplate ?? general.keyTemplate
  const isContentKey = tellsApart(template)
  const onConflict = common.onConflict ?? (target.exists || isContentKey ? 'rename' : 'replace')
  if (((common.onConflict ?? 'replace') !== 'replace' || common.dedupe) && !target.exists) {
    throw new UploadError(
      'invalid_request',
      `${id}: onConflict and dedupe need a provider that can check whether an object exists.`,
    )
  }
  const redirects = common.link === 'redirect' ? (common.linkAccess ?? 'anyone') : undefined
  if (redirects !== undefined && !target.sign)
    throw new UploadError('invalid_request', unsigned(id, provider))
  if (redirects === undefined && common.linkAccess === 'callers')
    throw new UploadError('invalid_request', `${id}: "linkAccess" needs "link" to be "redirect".`)
  return {
    type,
    name,
    id,
    target,
    spool: common.fallback === undefined ? target.spool : undefined,
    location,
    outgoing,
    keyTemplate: parseKeyTemplate(template),
    takesPath: template.includes('{path}'),
    isContentKey,
    onConflict,
    dedupe: common.dedupe ?? false,
    redirects,
    rewriteUrl: createUrlRewrite(common.urlRewrite ?? []),
    fallback: common.fallback,
    mirrors: common.mirrors ?? [],
    expiry: common.expiry,
    pictures: common.images ?? general.pictures,
    queue: target.traits?.serial ? general.putQueues.of(location) : undefined,
  }
}

function unsigned(id: string, { about }: Provider): string {
  const needed = typeof about?.signs === 'string' ? `"${about.signs}"` : 'a destination that can sign URLs'
  return `${id}: "link": "redirect" needs ${needed}.`
}

/** @throws UploadError if files of a destination expire but can't be removed there, at its fallback or at a mirror */
function assertRemovable(destinations: readonly Destination[]): void {
  const keeping = new Set(destinations.filter(({ target }) => !target.remove).map(({ id }) => id))
  for (const destination of destinations.filter(({ expiry }) => expiry)) {
    const fixed = destinationIdsOf(destination).find(id => keeping.has(id))
    if (fixed === undefined) continue
    const whose =
      fixed === destination.id ? 'Its provider' : `The provider of its mirror or fallback ${fixed}`
    throw new UploadError(
      'invalid_request',
      `${destination.id}: "expiry" needs a provider that can remove files. ${whose} can't. Omit "expiry".`,
    )
  }
}

export async function closeTargets(targets: readonly Target[]): Promise<void> {
  await Promise.allSettled(targets.map(async target => target.close?.()))
}

/**
 * Opens one target. A plugin may throw anything, or never return.
 *
 * @throws UploadError `invalid_request` with the destination and the plugin of its provider
 */
export async function openTarget(
  { type, name, provider, plugin, options }: DestinationSpec,
  deps: ProviderDeps,
  longestMs = LONGEST_MS,
): Promise<OpenTarget> {
  const open = async () => provider.open(options, deps)
  const late = () => new Error(`it was not opened within ${longestMs / 1000} s`)
  try {
    return await within(open(), longestMs, late)
  } catch (error) {
    const [whose, what] = plugin ? [` by the plugin "${plugin}"`, 'the plugin or '] : ['', '']
    const reason = describeThrown(error).replace(/\.$/, '')
    const message = `${type}/${name} can't be opened${whose}: ${reason}. Correct ${what}"providers.${type}.${name}", or remove it.`
    throw new UploadError('invalid_request', message, { cause: error })
  }
}
