import type { LoadedConfig } from '../config/load.ts'
import { knownHosts } from '../config/paths.ts'
import { type Destination, openDestinations } from '../uploader/delivery/destinations.ts'
import type { Turns } from '../uploader/delivery/turns.ts'

export interface DestinationDeps {
  /** Default: of this process alone. */
  readonly turns?: Turns
  /** A line for the operator from a destination. */
  warn(message: string): void
}

/** Opens the destinations of a configuration. @throws when one can't be used as it is configured */
export function openConfiguredDestinations(
  { destinations, settings, ownPaths, dataDirectory }: LoadedConfig,
  { warn, turns }: DestinationDeps,
): Promise<Destination[]> {
  const own = { ownPaths, knownHosts: knownHosts(dataDirectory) }
  return openDestinations(destinations, settings.keyTemplate, warn, own, turns, settings.pictures)
}
