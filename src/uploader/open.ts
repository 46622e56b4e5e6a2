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

/**
 * Opens every configured destination. It does not connect to them.
 *
 * @param keyTemplate default for destinations that have none
 * @param own files and folders of the server itself
 * @param putQueues shared with the destinations of earlier configurations, whose uploads may be in progress
 * @param images default for destinations that have none
 * @param general outbound proxies of destinations that have none
 */
export async function openDestinations(
  specs: readonly DestinationSpec[],
  keyTemplate: string,
  warn: (message: string) => void,
  own: Pick<ProviderDeps, 'ownPaths' | 'knownHosts' | 'programFolder' | 'learn'> = {},
  putQueues: NamedSlots = createPutQueues(),
  images?: PictureOptions,
  general?: Outgoing,
): Promise<Destination[]> {
  const deps = specs.map(({ name, common }) => ({
    ...own,
    name,
    warn,
    caFile: common.caFile,
    insecureTls: common.insecureTls,
    outgoing: general?.with(common.proxy),
  }))
  const targets = await openTargets(specs, deps)
  try {
    const opened = specs.map((spec, index) =>
      // `openTargets` returns one target for each spec.
      makeDestination(spec, targets[index] as OpenTarget, {
        keyTemplate,
        putQueues,
        pictures: images,
        outgoing: deps[index]?.outgoing,
      }),
    )
    assertRemovable(opened)
    return opened
  } catch (error) {
    await closeTargets(targets)
    throw error
  }
}

/** Queues for targets that allow one put at a time, by their location. */
export const createPutQueues = () => createNamedSlots(1, Number.POSITIVE_INFINITY)

interface Surroundings {
  readonly keyTemplate: string
  readonly putQueues: NamedSlots
  readonly pictures: PictureOptions | undefined
  readonly outgoing: Outgoing | undefined
}

/** @throws UploadError `invalid_request` if the target does not support the options of the destination */
function makeDestination(
  { type, name, provider, common }: DestinationSpec,
  target: OpenTarget,
  { putQueues, outgoing, ...general }: Surroundings,
): Destination {
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
    target,
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
    queue: target.traits?.serial ? putQueues.of(location) : undefined,
  }
}

function unsigned(id: string, { about }: Provider): string {
  const needed = typeof about?.signs === 'string' ? `"${about.signs}"` : 'a destination that can sign URLs'
  return `${id}: "link": "redirect" needs ${needed}.`
}

/** @throws UploadError if files of a destination expire but can't be removed there, at its fallback or at a mirror */
function assertRemovable(destinations: readonly Destination[]): void {
  const keeping = new Set(destinations.filter(({ target }) => !target.remove).map(idOf))
  for (const destination of destinations.filter(({ expiry }) => expiry)) {
    const fixed = destinationIdsOf(destination).find(id => keeping.has(id))
    if (fixed === undefined) continue
    const whose =
      fixed === idOf(destination) ? 'Its provider' : `The provider of its mirror or fallback ${fixed}`
    throw new UploadError(
      'invalid_request',
      `${idOf(destination)}: "expiry" needs a provider that can remove files. ${whose} can't. Omit "expiry".`,
    )
  }
}

/**
 * Opens all targets. If one fails, the others are closed again.
 *
 * @param deps for each target, in order
 * @throws as `openTarget`
 */
async function openTargets(
  specs: readonly DestinationSpec[],
  deps: readonly ProviderDeps[],
): Promise<OpenTarget[]> {
  const opening = specs.map((spec, index) => openTarget(spec, deps[index] as ProviderDeps)) // there is one for each
  try {
    return await Promise.all(opening)
  } catch (error) {
    const settled = await Promise.allSettled(opening)
    await closeTargets(settled.flatMap(one => (one.status === 'fulfilled' ? [one.value] : [])))
    throw error
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
