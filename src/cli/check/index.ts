import { defineCommand, type Flags } from '../define.ts'
import { config } from '../flags.ts'

export const flags = { config } as const satisfies Flags

export const check = defineCommand({
  name: 'check',
  about:
    'test destinations: store a small image, download and compare it, remove it (see also: config validate)',
  arg: {
    spelling: '[destination]',
    about: '"provider" or "provider/configName" (default: all destinations)',
    offers: 'destination',
  },
  flags,
  examples: [
    ['upload-server check', 'all destinations'],
    ['upload-server check s3/blog', 'one destination'],
  ],
  load: () => import('./run.ts'),
})
