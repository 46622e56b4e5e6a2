import { availableParallelism } from 'node:os'
import { configDefaults, defineConfig } from 'vitest/config'

/**
 * Tests that leave their process as they found it, so that one process can run file after file and loads the program
 * once. Not for tests that measure memory or set environment variables.
 */
const TIDY = [
  'test/{clients,comments,config,files,flow,http,notes,payload,uploader}/**/*.test.ts',
  // The types of messages are those of the process, which the servers of other tests would set.
  'test/routes/!(message-types).test.ts',
  'test/{mask,options}.test.ts',
]

export default defineConfig({
  test: {
    // Tests wait for other programs for a third of their time: one worker more than there are cores keeps all of them busy.
    maxWorkers: availableParallelism() + 1,
    testTimeout: 30_000,
    hookTimeout: 60_000,
    // Until it holds: a busy machine takes its time.
    expect: { poll: { timeout: 10_000 } },
    coverage: { provider: 'v8', include: ['src/**'], reporter: ['text-summary', 'html'] },
    projects: [
      { extends: true, test: { name: 'tidy', isolate: false, include: TIDY } },
      {
        extends: true,
        test: {
          name: 'alone',
          include: ['test/**/*.test.ts'],
          exclude: [...configDefaults.exclude, ...TIDY],
        },
      },
    ],
  },
})
