import { isLoopbackHost, isSocketPath } from './endpoint.ts'
import type { Settings } from './schema.ts'

/** A sentence for the operator where the settings show that there is a proxy, which may lend out what this machine may. */
export function warnOfProxies({ server, auth }: Settings): string[] {
  const { host, publicUrl, trustProxy } = server
  if (!auth.loopbackExempt || isSocketPath(host)) return []
  const isPublic = publicUrl !== undefined && !isLoopbackHost(new URL(publicUrl).hostname)
  if (!isPublic && trustProxy.length === 0) return []
  const setting = isPublic ? 'server.publicUrl' : 'server.trustProxy'
  return [
    `${setting} shows that there is a proxy. If it runs on this machine and adds no X-Forwarded-For, whoever reaches it ` +
      'counts as a program of this machine and needs no key: set auth.loopbackExempt to false',
  ]
}
