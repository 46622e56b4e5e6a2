import type { LoadedConfig } from '../config/load.ts'
import { knownHosts } from '../config/paths.ts'
import type { NamedSlots } from '../flow/slots.ts'
import { createOutgoing } from '../http/proxy/outgoing.ts'
import type { Mask } from '../mask.ts'
import type { Destination } from '../uploader/destinations.ts'
import { openDestinations } from '../uploader/open.ts'

export interface DestinationDeps {
  /** Queues of targets that accept one put at a time. The next configuration uses the same ones. */
  readonly putQueues?: NamedSlots
  /** Where the addresses of proxies stand. */
  readonly env: Readonly<Record<string, string | undefined>>
  /** A line for the operator from a destination. */
  warn(message: string): void
  /** Learns the credentials that destinations make. */
  readonly mask?: Mask
}

/** Opens the destinations of a configuration. @throws when one can't be used as it is configured */
export function openConfiguredDestinations(
  config: LoadedConfig,
  { warn, putQueues, env, mask }: DestinationDeps,
): Promise<Destination[]> {
  const { destinations, settings, ownPaths, dataDirectory, programFolder } = config
  const { keyTemplate, images, network } = settings
  const learn = (credentials: readonly string[]) => mask?.learn?.(credentials)
  const own = { ownPaths, knownHosts: knownHosts(dataDirectory), programFolder, learn }
  const outgoing = createOutgoing(network, env)
  return openDestinations(destinations, keyTemplate, warn, { ...own, putQueues, images, general: outgoing })
}
