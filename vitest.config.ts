import { availableParallelism } from 'node:os'
import { configDefaults, defineConfig } from 'vitest/config'

/**
 * What needs a process of its own: it counts memory, measures turns of the event loop, or changes what can't be put back.
 * All other tests leave their process as they found it, so that it runs file after file and loads the program once.
 */
const ALONE = [
  'test/providers/{kit,local,s3}.test.ts',
  'test/{limits,pictures/pictures,repository,store-faults}.test.ts',
  // A browser or a display is started once for a file.
  'test/{browser,docs-commands,page,recipes,security/web-pages}.test.ts',
]

export default defineConfig({
  test: {
    // Tests wait for other programs for a third of their time: two workers more than there are cores keep all of them busy.
    maxWorkers: availableParallelism() + 2,
    testTimeout: 30_000,
    hookTimeout: 60_000,
    // Until it holds: a busy machine takes its time.
    expect: { poll: { timeout: 10_000 } },
    coverage: { provider: 'v8', include: ['src/**'], reporter: ['text-summary', 'html'] },
    projects: [
      {
        extends: true,
        test: {
          name: 'together',
          isolate: false,
          include: ['test/**/*.test.ts'],
          exclude: [...configDefaults.exclude, ...ALONE],
        },
      },
      { extends: true, test: { name: 'alone', include: ALONE } },
    ],
  },
})
