import { defineCommand, type Flags } from '../define.ts'
import { config, countFrom, text } from '../flags.ts'

export const flags = {
  port: {
    short: '-p',
    about: 'port to listen on; 0 selects any free port (default: 36677)',
    value: countFrom(0, 65535, 'port'),
  },
  host: {
    about: 'IP address to listen on, or the path of a Unix socket (default: 127.0.0.1)',
    value: text('host'),
  },
  config,
  key: {
    short: '-k',
    about: 'upload key for remote clients; UPLOAD_SERVER_KEY keeps it out of the process list',
    value: text('key'),
    isSecret: true,
  },
  strictPort: { about: 'exit with 1 if the port is in use, instead of trying the next ports' },
  allowAnonymous: { about: 'allow anyone to upload without a key' },
  logLevel: {
    about: 'minimum log level (default: info)',
    value: { shown: 'level', offers: async () => (await import('../../config/schema.ts')).LOG_LEVELS },
  },
  watch: { about: 'reload the configuration only on SIGHUP, not when its file changes', isNegated: true },
} as const satisfies Flags

export const serve = defineCommand({
  name: 'serve',
  about: 'start the server (the default command)',
  isDefault: true,
  flags,
  examples: [
    ['upload-server --port 8080'],
    ['upload-server --config /etc/upload-server/config.json --strict-port'],
  ],
  notes: 'SIGTERM shuts down gracefully: uploads in progress finish. SIGHUP reloads the configuration.',
  load: () => import('./run.ts'),
})
