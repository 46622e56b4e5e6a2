import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { expect, it } from 'vitest'
import { kit } from '../../src/providers/kit.ts'

const SRC = join(import.meta.dirname, '../../src')
const PROVIDERS = join(SRC, 'providers')
const PAGE = readFileSync(join(SRC, '../docs/contributing/write-a-provider.md'), 'utf8')

/** Everything in the kit, in its groups, too. */
const OFFERED = new Set(
  Object.values<unknown>(kit).flatMap(one => [
    one,
    ...(Object.isFrozen(one) && typeof one === 'object' && one !== null ? Object.values(one) : []),
  ]),
)

/** What built-in providers import from outside their own folders, as `room/file.ts`, with the names of values. */
function listImports(): [module: string, name: string][] {
  const files = readdirSync(PROVIDERS, { recursive: true, encoding: 'utf8' }).filter(
    path => path.endsWith('.ts') && !/^(?:shared\/|contract|kit|registry)/.test(path),
  )
  return files.flatMap(path => {
    const text = readFileSync(join(PROVIDERS, path), 'utf8')
    const own = path.includes('/') ? join(PROVIDERS, path.split('/')[0] ?? '') : undefined
    return [...text.matchAll(/^import \{([^}]*)\} from '(\.[^']+)'/gm)].flatMap(
      ([, names = '', from = '']) => {
        const module = join(PROVIDERS, dirname(path), from)
        if (own !== undefined && module.startsWith(`${own}/`)) return []
        return names
          .split(',')
          .map(name => name.trim())
          .filter(name => name !== '' && !name.startsWith('type '))
          .map((name): [string, string] => [relative(SRC, module), name.split(' ')[0] ?? ''])
      },
    )
  })
}

it('built-in providers use nothing that the kit does not offer, but for what its page lists', async () => {
  const listed = [...PAGE.matchAll(/^\| `([\w/.-]+\.ts)` \|/gm)].map(([, path = '']) => path)
  const beside = new Set<string>()
  for (const [module, name] of listImports()) {
    const loaded = (await import(join(SRC, module))) as Record<string, unknown>
    if (!OFFERED.has(loaded[name])) beside.add(module)
  }
  expect(beside.size).toBeGreaterThan(0)
  expect(listed.sort()).toEqual([...beside].sort())
})

it('the page names everything that is in the kit', () => {
  const names = Object.entries<unknown>(kit).flatMap(([name, one]) =>
    Object.isFrozen(one) && typeof one === 'object' && one !== null && name !== 'z'
      ? Object.keys(one).map(inner => `${name}.${inner}`)
      : [name],
  )
  expect(names.filter(name => !PAGE.includes(`\`${name}\``) && !PAGE.includes(`\`${name}(`))).toEqual([])
})
