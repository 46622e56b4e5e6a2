import type { LoadedConfig } from '../config/load.ts'
import { knownHosts } from '../config/paths.ts'
import { createOutgoing } from '../http/proxy/outgoing.ts'
import type { Destination } from '../uploader/delivery/destinations.ts'
import { openDestinations } from '../uploader/delivery/open.ts'
import type { SharedTurns } from '../uploader/delivery/shared-turns.ts'

export interface DestinationDeps {
  /** Default: of this process alone. */
  readonly turns?: SharedTurns
  /** Where the addresses of proxies stand. */
  readonly env: Readonly<Record<string, string | undefined>>
  /** A line for the operator from a destination. */
  warn(message: string): void
}

/** Opens the destinations of a configuration. @throws when one can't be used as it is configured */
export function openConfiguredDestinations(
  { destinations, settings, ownPaths, dataDirectory }: LoadedConfig,
  { warn, turns, env }: DestinationDeps,
): Promise<Destination[]> {
  const { keyTemplate, pictures, network } = settings
  const own = { ownPaths, knownHosts: knownHosts(dataDirectory) }
  const outgoing = createOutgoing(network, env)
  return openDestinations(destinations, keyTemplate, warn, own, turns, pictures, outgoing)
}
