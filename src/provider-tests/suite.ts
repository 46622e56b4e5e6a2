import { describe } from 'vitest'
import { describeFailing } from './failing.ts'
import { describeFarEnd } from './far-end-answers.ts'
import { describeOperations } from './operations.ts'
import type { ContractSetup } from './setup.ts'
import { describeStoring } from './storing.ts'
import { prepareTrial } from './trial.ts'

/**
 * Registers the suite that says what a provider is. Every provider joins it, against a real server.
 *
 * @param unavailable why it can't run here, as a phrase: reported as skipped, and under CI=true as failed
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
    describeFarEnd(trial)
    describeOperations(trial)
  })
}
