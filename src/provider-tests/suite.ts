import { describe } from 'vitest'
import { describeFailing } from './failing.ts'
import { describeOperations } from './operations.ts'
import { describeServerFailures } from './server-failures.ts'
import type { ContractSetup } from './setup.ts'
import { describeStoring } from './storing.ts'
import { prepareTrial } from './trial.ts'

/**
 * Registers the contract suite, which every provider must pass, against a real server.
 *
 * @param unavailable reason why the suite can't run here: its tests are reported as skipped, or as failed with CI=true
 */
export function describeProvider(
  name: string,
  start: () => ContractSetup | Promise<ContractSetup>,
  unavailable?: string,
): void {
  describe(`${name} keeps the contract of providers`, () => {
    const trial = prepareTrial(name, start, unavailable)
    describeStoring(trial)
    describeFailing(trial)
    describeServerFailures(trial)
    describeOperations(trial)
  })
}
