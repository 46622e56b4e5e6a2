import { expect, it, onTestFinished } from 'vitest'
import { createCanceller } from '../../src/flow/cancellation.ts'

it('a request of many files printed a warning for its listeners', async () => {
  const warnings: Error[] = []
  const note = (warning: Error) => void warnings.push(warning)
  process.on('warning', note)
  onTestFinished(() => void process.off('warning', note))
  const { signal } = createCanceller()
  for (let count = 0; count < 50; count++) signal.addEventListener('abort', () => {})
  await new Promise(setImmediate)
  expect(warnings).toEqual([])
})
