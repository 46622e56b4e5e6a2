import { expect, it } from 'vitest'
import { loadProviders } from '../../src/providers/registry.ts'

it('init offers every provider, and asks only for existing options', async () => {
  for (const { type, about, config } of await loadProviders()) {
    const choices = about?.choices ?? []
    expect(choices, type).not.toEqual([])
    const names = choices.flatMap(({ options = {}, asks }) => [
      ...Object.keys(options),
      ...asks.map(name => name.replace('?', '')),
    ])
    expect(Object.keys(config.shape)).toEqual(expect.arrayContaining(names))
  }
})
