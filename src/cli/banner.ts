import { networkInterfaces } from 'node:os'
import { isLoopbackHost, isSocketPath } from '../config/endpoint.ts'
import type { LoadedConfig } from '../config/load.ts'
import { idOf } from '../uploader/delivery/destinations.ts'

/** How the server begins on a terminal: where it is reached, where files go, what it was configured by, and who needs a key. */
export function describeStart({ settings, destinations, file }: LoadedConfig, url: string): string {
  const { host, publicUrl } = settings.server
  const isPage = !isSocketPath(host)
  const rows: (readonly [name: string, value: string])[] = [
    ['Local', url],
    ...networkRows(host, url),
    ...(publicUrl === undefined ? [] : [['Public', publicUrl] as const]),
    ...(isPage
      ? [['Page', `${new URL('.', `${publicUrl ?? url}/`).href}  drop files there in a browser`] as const]
      : []),
    ['Files to', placeOf({ settings, destinations })],
    ['Config', file ?? 'none; upload-server init makes one'],
    ['Key', describeKeys(settings)],
  ]
  const width = Math.max(...rows.map(([name]) => name.length)) + 1
  // At once: a terminal that is closed in between must not look like a full disk.
  return ['', ...rows.map(([name, value]) => `  ➜  ${`${name}:`.padEnd(width)}  ${value}`), ''].join('\n')
}

/** Addresses at which other machines find a server that listens on all of them. */
function networkRows(host: string, url: string): (readonly [string, string])[] {
  if (isSocketPath(host)) return []
  if (isLoopbackHost(host)) return [['Network', 'not reached from there; --host 0.0.0.0 opens it']]
  if (host !== '0.0.0.0' && host !== '::') return []
  const port = new URL(url).port
  return Object.values(networkInterfaces())
    .flatMap(addresses => addresses ?? [])
    .filter(({ internal, family }) => !internal && family === 'IPv4')
    .map(({ address }) => ['Network', `http://${address}:${port}`] as const)
}

function placeOf({ settings, destinations }: Pick<LoadedConfig, 'settings' | 'destinations'>): string {
  const inUse =
    destinations.find(one => [one.type, idOf(one)].includes(settings.default ?? '')) ?? destinations[0]
  if (!inUse) return 'nowhere yet'
  const { options } = inUse as { options: { readonly directory?: unknown } }
  const where = inUse.type === 'local' ? `${options.directory}  (${idOf(inUse)})` : idOf(inUse)
  const others = destinations.length - 1
  return others > 0 ? `${where}, and ${others} more by name` : where
}

function describeKeys({ server, auth }: LoadedConfig['settings']): string {
  const isKeyed = server.key !== undefined || auth.keys.length > 0
  const who = auth.loopbackExempt && !isSocketPath(server.host) ? 'other machines' : 'everybody'
  if (auth.anonymous) return 'none needed: anybody may upload'
  if (isKeyed) return `needed by ${who}`
  return `none set: ${who === 'everybody' ? 'all callers are refused' : 'only programs of this machine upload'}`
}
