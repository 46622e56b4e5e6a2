import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { kit } from '../../src/providers/kit.ts'

const PAGE = readFileSync(join(import.meta.dirname, '../../docs/contributing/write-a-provider.md'), 'utf8')

it('the page names everything that is in the kit', () => {
  const names = Object.entries<unknown>(kit).flatMap(([name, one]) =>
    Object.isFrozen(one) && typeof one === 'object' && one !== null && name !== 'z'
      ? Object.keys(one).map(inner => `${name}.${inner}`)
      : [name],
  )
  expect(names.filter(name => !PAGE.includes(`\`${name}\``) && !PAGE.includes(`\`${name}(`))).toEqual([])
})
