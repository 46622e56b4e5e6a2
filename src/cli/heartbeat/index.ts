import { defineCommand, type Flags } from '../define.ts'
import { config, serverUrl } from '../flags.ts'

export const flags = {
  config,
  server: { about: 'URL of the server (default: the server of the configuration)', value: serverUrl },
  ready: {
    about: 'succeed only if the server accepts uploads: its database works, and it is not shutting down',
  },
} as const satisfies Flags

export const heartbeat = defineCommand({
  name: 'heartbeat',
  about: 'check whether the server is up (health check): exit with 0 if it responds',
  flags,
  examples: [
    ['upload-server heartbeat', 'the server of the configuration'],
    ['upload-server heartbeat --server http://127.0.0.1:36677'],
    ['upload-server heartbeat --ready', 'for load balancers and containers'],
  ],
  load: () => import('./run.ts'),
})
