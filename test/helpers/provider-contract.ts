import * as suite from '../../src/provider-tests/index.ts'
import { hasProgram, howToInstall, type Needs } from './needs.ts'

export { type Absence, type Breakable, type ContractSetup, objectOf } from '../../src/provider-tests/index.ts'
export {
  bytesOf,
  interruptedObject,
  largeObject,
  stallingObject,
  tearingObject,
} from '../../src/provider-tests/objects.ts'

/** @param requires programs of Debian packages without which the suite cannot run: `[['sshd', 'openssh-server']]` */
export function describeProvider(
  name: string,
  start: Parameters<typeof suite.describeProvider>[1],
  requires: Needs = [],
): void {
  const missing = requires.find(([program]) => !hasProgram(program))
  suite.describeProvider(name, start, missing && howToInstall(...missing))
}
