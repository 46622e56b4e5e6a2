import { defineCommand, type Flags } from '../define.ts'
import { config, destination, duration, text } from '../flags.ts'

export const flags = {
  config,
  destination: { about: 'only at this destination: "provider" or "provider/configName"', value: destination },
  olderThan: {
    about: 'delete all files of --destination that are older: 90s, 10m, 12h, 30d',
    value: duration,
  },
  path: {
    about: 'with --older-than: only files below this folder',
    value: text('folder'),
    needs: ['olderThan'],
  },
  dryRun: { about: 'list what would be deleted, and delete nothing' },
  yes: { about: 'do not ask for confirmation' },
} as const satisfies Flags

export const remove = defineCommand({
  name: 'remove',
  aliases: ['delete', 'rm'],
  about: 'delete uploaded files and all their copies',
  arg: { spelling: '[what...]', about: 'links, object keys, or ids of uploads or requests' },
  flags,
  examples: [
    ['upload-server remove https://img.example.com/files/blog/2026/11/cat-62c8c6d0.png'],
    ['upload-server remove --destination s3/ci --older-than 30d --path screens --dry-run'],
    ['upload-server remove --destination s3/ci --older-than 30d --yes'],
  ],
  notes: `Only files in the upload history can be deleted. A link or an object key deletes the file, even if several uploads share it.
The id of an upload deletes its files, except those that other uploads share.`,
  load: () => import('./run.ts'),
})
