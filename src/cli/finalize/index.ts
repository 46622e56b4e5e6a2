import { defineCommand, type Flags } from '../define.ts'
import { config, credentials, serverUrl } from '../flags.ts'

export const flags = {
  config,
  server: { about: 'run them on a running server; requires ids', value: serverUrl },
  ...credentials,
} as const satisfies Flags

export const finalize = defineCommand({
  name: 'finalize',
  about: 'run the failed post-upload steps (hooks, history) of stored files again',
  arg: { spelling: '[id...]', about: 'finalizationId of an upload (default: all pending uploads)' },
  flags,
  examples: [
    ['upload-server finalize', 'all pending uploads'],
    ['upload-server finalize 01jd3k8q', 'one upload'],
    ['upload-server finalize --server https://img.example.com 01jd3k8q'],
  ],
  load: () => import('./run.ts'),
})
