import { defineCommand, type Flags } from '../define.ts'
import { config } from '../flags.ts'

export const flags = { config } as const satisfies Flags

export const backup = defineCommand({
  name: 'backup',
  about: 'back up the SQLite database (jobs, history, expiry dates), also while the server runs',
  arg: {
    spelling: '<file>',
    about: 'new file for the copy, mode 0600; an existing file is never replaced',
    offers: 'file',
  },
  flags,
  examples: [
    ['upload-server backup store-backup.db'],
    ['upload-server backup "/srv/backup/store-$(date +%F).db"'],
  ],
  notes:
    'To restore it, stop the server and copy the file back as store.db. For PostgreSQL, it prints the command to use.',
  exitCodes: { 0: 'success', 1: 'failure', 130: 'interrupted (Ctrl-C)' },
  load: () => import('./run.ts'),
})
