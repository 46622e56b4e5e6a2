import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { makeDirectory } from '../../helpers/directory.ts'
import { runProgram } from '../../helpers/run-program.ts'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
const read = (path: string): string => readFileSync(`${ROOT}/${path}`, 'utf8')

interface Locked {
  version?: string
  resolved?: string
  integrity?: string
  link?: boolean
  inBundle?: boolean
}

/** What is published; `src` is not, so no test and no note can slip in with it. */
const PUBLISHED = [
  /^dist\/[\w-]+\.js$/,
  /^dist\/types\/[\w/-]+\.d\.ts$/,
  /^dist\/(?:(?:bundled|openapi)\.json|licences\.txt)$/,
  /^dist\/(?:page|report)\/[\w/.-]+$/,
  /^bin\/upload-server\.js$/,
  /^(?:README(?:\.[\w-]+)?|CHANGELOG|SECURITY)\.md$/,
  /^docs\/(?:[\w-]+\/)?[\w-]+\.md$/,
  /^docs\/examples\/(?:[\w-]+\/)?[\w.-]+$/,
  /^(?:LICENSE|package\.json|config\.schema\.json|upload-server\.example\.json)$/,
]

it('the published package holds only what is needed', async () => {
  const cache = await makeDirectory()
  const args = ['pack', '--dry-run', '--json', '--ignore-scripts', '--cache', cache]
  const { stdout } = await runProgram('npm', args, { cwd: ROOT })
  const [{ files }] = JSON.parse(stdout) as [{ files: { path: string }[] }]
  const paths = files.map(file => file.path)
  expect(paths).toContain('dist/start.js')
  expect(paths.filter(path => !PUBLISHED.some(pattern => pattern.test(path)))).toEqual([])
})

it('every package of the lock file is pinned by a strong hash, and comes over TLS from one place', () => {
  const { packages } = JSON.parse(read('package-lock.json')) as { packages: Record<string, Locked> }
  const locked = Object.entries(packages).filter(([path]) => path !== '')
  expect(locked.length).toBeGreaterThan(100)
  const loose = locked.filter(([, one]) => one.link || one.inBundle || !/^sha512-/.test(one.integrity ?? ''))
  expect(loose.map(([path]) => path)).toEqual([])
  const origins = new Set(locked.flatMap(([, one]) => (one.resolved ? [new URL(one.resolved).origin] : [])))
  expect(origins.size).toBeLessThanOrEqual(1)
  for (const origin of origins) expect(origin).toMatch(/^https:/)
})

it('no package runs a script when it is installed, and this one has none', () => {
  expect(read('.npmrc')).toMatch(/^ignore-scripts=true$/m)
  const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> }
  const hooks = Object.keys(scripts).filter(name =>
    /^(?:pre|post)?(?:install|prepare|publish|pack)$/.test(name),
  )
  expect(hooks).toEqual([])
})
