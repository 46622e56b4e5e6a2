import { networkInterfaces } from 'node:os'
import { isLoopbackHost, isSocketPath } from '../config/endpoint.ts'
import type { LoadedConfig } from '../config/load.ts'
import { idOf } from '../uploader/delivery/destinations.ts'
import type { Part } from './terminal.ts'

/** How the server begins on a terminal: where it is reached, where files go, what it was configured by, and who needs a key. */
export function describeStart({ settings, destinations, file }: LoadedConfig, url: string): Part[] {
  const { host, publicUrl } = settings.server
  const isPage = !isSocketPath(host)
  const rows: Row[] = [
    ['Local', url],
    ...networkRows(host, url),
    ...(publicUrl === undefined ? [] : [['Public', publicUrl] as const]),
    ...(isPage
      ? [['Page', new URL('.', `${publicUrl ?? url}/`).href, 'drop files there in a browser'] as const]
      : []),
    ['Files to', ...placeOf({ settings, destinations })],
    file === undefined ? ['Config', 'none', 'upload-server init makes one'] : ['Config', file],
    ['Key', describeKeys(settings)],
  ]
  const width = Math.max(...rows.map(([name]) => name.length)) + 1
  // At once: a terminal that is closed in between must not look like a full disk.
  return rows
    .flatMap(([name, value, remark]): Part[] => [
      '\n  ',
      { text: '➜', style: 'green' },
      '  ',
      { text: `${name}:`.padEnd(width), style: 'bold' },
      '  ',
      URL.canParse(value) ? { text: value, style: 'cyan' } : value,
      ...(remark === undefined ? [] : [{ text: `  ${remark}`, style: 'dim' } as const]),
    ])
    .concat('\n')
}

type Row = readonly [name: string, value: string, remark?: string]

/** Addresses at which other machines find a server that listens on all of them. */
function networkRows(host: string, url: string): Row[] {
  if (isSocketPath(host)) return []
  if (isLoopbackHost(host)) return [['Network', 'not reached from there', '--host 0.0.0.0 opens it']]
  if (host !== '0.0.0.0' && host !== '::') return []
  const port = new URL(url).port
  return networkAddresses().map(address => ['Network', `http://${address}:${port}`] as const)
}

/** By which the network knows this machine. */
export function networkAddresses(): string[] {
  return Object.values(networkInterfaces())
    .flatMap(addresses => addresses ?? [])
    .filter(({ internal, family }) => !internal && family === 'IPv4')
    .map(({ address }) => address)
}

function placeOf({
  settings,
  destinations,
}: Pick<LoadedConfig, 'settings' | 'destinations'>): [place: string, remark?: string] {
  const inUse =
    destinations.find(one => [one.type, idOf(one)].includes(settings.default ?? '')) ?? destinations[0]
  if (!inUse) return ['nowhere yet']
  const { options } = inUse as { options: { readonly directory?: unknown } }
  const others = destinations.length - 1
  const more = others > 0 ? [`and ${others} more by name`] : []
  const [place, ...remarks] =
    inUse.type === 'local' ? [String(options.directory), `(${idOf(inUse)})`, ...more] : [idOf(inUse), ...more]
  return remarks.length > 0 ? [place as string, remarks.join(', ')] : [place as string]
}

function describeKeys({ server, auth }: LoadedConfig['settings']): string {
  const isKeyed = server.key !== undefined || auth.keys.length > 0
  const who = auth.loopbackExempt && !isSocketPath(server.host) ? 'other machines' : 'everybody'
  if (auth.anonymous) return 'none needed: anybody may upload'
  if (isKeyed) return `needed by ${who}`
  return `none set: ${who === 'everybody' ? 'all callers are refused' : 'only programs of this machine upload'}`
}
