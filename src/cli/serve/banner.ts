import { networkInterfaces } from 'node:os'
import { isSocketPath } from '../../config/endpoint.ts'
import type { LoadedConfig } from '../../config/load.ts'
import { isLoopback } from '../../http/proxy/no-proxy.ts'
import { idOf } from '../../uploader/destinations.ts'

type BannerRow = readonly [name: string, value: string, remark?: string]

/** The start-up banner on a terminal: URLs, where files are stored, the configuration file, and who needs a key. */
export function describeStart(config: LoadedConfig, url: string): string {
  const { file, settings } = config
  const { host, publicUrl } = settings.server
  const rows: BannerRow[] = [['Local', url], ...networkRows(host, url)]
  if (publicUrl !== undefined) rows.push(['Public', publicUrl])
  if (!isSocketPath(host))
    rows.push(['Page', new URL('.', `${publicUrl ?? url}/`).href, 'upload files in a browser'])
  rows.push(
    ['Files', ...describeDestination(config)],
    file === undefined ? ['Config', 'none', 'run upload-server init to create one'] : ['Config', file],
    ['Key', describeKeys(settings)],
  )
  const width = Math.max(...rows.map(([name]) => name.length)) + 1
  const lines = rows.map(([name, ...parts]) => ['', '➜', `${name}:`.padEnd(width), ...parts].join('  '))
  // The banner is one write: a terminal closed in between must not look like a full disk.
  return ['', ...lines, ''].join('\n')
}

/** The URLs for other machines, if the server listens on all interfaces. */
function networkRows(host: string, url: string): BannerRow[] {
  if (isSocketPath(host)) return []
  if (isLoopback(host)) return [['Network', 'not reachable', 'use --host 0.0.0.0 to allow other machines']]
  if (host !== '0.0.0.0' && host !== '::') return []
  const { port } = new URL(url)
  return networkAddresses().map(address => ['Network', `http://${address}:${port}`])
}

/** The IPv4 addresses of this machine in the network. */
export const networkAddresses = (): string[] =>
  Object.values(networkInterfaces())
    .flatMap(addresses => addresses ?? [])
    .filter(({ internal, family }) => !internal && family === 'IPv4')
    .map(({ address }) => address)

/** Where uploads are stored by default: the directory of `local`, otherwise the ID of the destination. */
function describeDestination({ settings, destinations }: LoadedConfig): [location: string, remark?: string] {
  const inUse =
    destinations.find(one => [one.type, idOf(one)].includes(settings.default ?? '')) ?? destinations[0]
  if (!inUse) return ['no destination configured']
  const others = destinations.length - 1
  const more = others > 0 ? `and ${others} other ${others === 1 ? 'destination' : 'destinations'}` : ''
  const id = idOf(inUse)
  if (inUse.type !== 'local') return more === '' ? [id] : [id, more]
  return [String(inUse.options['directory']), [`(${id})`, more].filter(Boolean).join(', ')]
}

function describeKeys({ server, auth }: LoadedConfig['settings']): string {
  const isKeyed = server.key !== undefined || auth.keys.length > 0 || auth.tokens.length > 0
  const hasExemption = auth.loopbackExempt && !isSocketPath(server.host)
  if (auth.anonymous) return 'not needed: anyone can upload'
  if (isKeyed) return `needed by ${hasExemption ? 'other machines' : 'all clients'}`
  return `not set: ${hasExemption ? 'only programs on this machine can upload' : 'all uploads are rejected'}`
}
