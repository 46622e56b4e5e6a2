import { startCutProxy } from '../../src/provider-tests/cut-proxy.ts'
import * as suite from '../../src/provider-tests/index.ts'
import type { Target } from '../../src/providers/contract.ts'
import { hasProgram, howToInstall, type Needs } from './needs.ts'
import { fetchPublic, type Options } from './target.ts'

export { type ContractSetup, objectOf } from '../../src/provider-tests/index.ts'
export { bytesOf, largeObject, stallingObject } from '../../src/provider-tests/objects.ts'

/** @param requires programs of Debian packages without which the suite cannot run: `[['sshd', 'openssh-server']]` */
export function describeProvider(
  name: string,
  start: Parameters<typeof suite.describeProvider>[1],
  requires: Needs = [],
): void {
  const missing = requires.find(([program]) => !hasProgram(program))
  suite.describeProvider(name, start, missing && howToInstall(...missing))
}

/**
 * What the suite needs of a destination at a server of this machine.
 *
 * @param open opens it through a port of 127.0.0.1, with other options than usual
 * @param bad options with wrong credentials
 */
export async function contractAt(
  { port, close }: { readonly port: number; close(): Promise<unknown> },
  open: (port: number, others?: Options) => Promise<Target>,
  { bad, ...more }: Partial<suite.ContractSetup> & { secrets: readonly string[]; bad: Options },
): Promise<suite.ContractSetup> {
  const proxy = await startCutProxy(port)
  return {
    target: await open(port),
    fetch: fetchPublic,
    withBadCredentials: () => open(port, bad),
    breakable: async () => ({ ...proxy, target: await open(proxy.port) }),
    forgeable: { port, open: at => open(at) },
    async close() {
      proxy.close()
      await close()
    },
    ...more,
  }
}
