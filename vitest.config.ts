import { availableParallelism } from 'node:os'
import { configDefaults, defineConfig } from 'vitest/config'

const SYSTEM = 'test/system/**/*.test.ts'
const CHAOS = 'test/chaos/**/*.test.ts'

/**
 * What needs a process of its own: it counts memory, measures turns of the event loop, or changes what can't be put back.
 * All other tests leave their process as they found it, so that it runs file after file and loads the program once.
 */
const ALONE = ['test/providers/{kit,local}.test.ts', 'test/{pictures/pictures,repository}.test.ts']
const SYSTEM_ALONE = [
  'test/system/{limits,pictures/pictures,store-faults,providers/{local,s3}}.test.ts',
  'test/system/store/on-postgres.test.ts',
  // A browser or a display is started once for a file.
  'test/system/{cross-site,docs-commands,page,recipes,client/reports/report-page,security/web-pages}.test.ts',
]

/** @param isolate whether each file has a process of its own */
const project = (name: string, include: string[], exclude: string[] = [], isolate = true) => ({
  extends: true as const,
  test: { name, include, isolate, exclude: [...configDefaults.exclude, ...exclude] },
})

export default defineConfig({
  test: {
    // Tests wait for other programs for a third of their time: two workers more than there are cores keep all of them busy.
    maxWorkers: availableParallelism() + 2,
    testTimeout: 30_000,
    hookTimeout: 60_000,
    // Until it holds: a busy machine takes its time.
    expect: { poll: { timeout: 10_000 } },
    coverage: { provider: 'v8', include: ['src/**'], reporter: ['text-summary', 'html'] },
    // docs/contributing/testing.md says what is in which tier.
    projects: [
      project('node', ['test/**/*.test.ts'], [SYSTEM, CHAOS, ...ALONE], false),
      project('node-alone', ALONE),
      project('system', [SYSTEM], SYSTEM_ALONE, false),
      project('system-alone', SYSTEM_ALONE),
      project('chaos', [CHAOS]),
    ],
  },
})
