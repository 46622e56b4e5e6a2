import { defineCommand, type Flags } from '../define.ts'
import { choice, config, credentials, grouped, serverUrl, text } from '../flags.ts'
import { reviewFlags } from '../review-flags.ts'

/** What is drawn, the report and the baseline are uploaded there. Without these flags, nothing is uploaded. */
const storageFlags = {
  ...choice,
  expires: { about: 'delete the uploaded files after this time, such as 14d', value: text('when') },
  server: { about: 'upload through a running server, which may have a private IP address', value: serverUrl },
  ...credentials,
  config,
} as const satisfies Flags

export const flags = {
  dryRun: { about: 'print the comment instead of posting it, and upload nothing' },
  ...reviewFlags,
  ...grouped('Uploads', storageFlags),
} as const satisfies Flags

export const comment = defineCommand({
  name: 'comment',
  about: 'create or update a comment on a pull request that shows uploaded images',
  arg: {
    spelling: '[results...]',
    about:
      'output files of "upload --format json", such as one of each shard, or - for standard input (default: -)',
    offers: 'file',
  },
  flags,
  examples: [
    ['upload-server upload shots/ --format json > shots.json'],
    ['upload-server comment shots.json', 'in CI, on the pull request of the job'],
    ['upload-server comment shard-*.json', 'one comment for the shards of a test run'],
    ['upload-server comment shots.json --compare main.json --pr https://github.com/me/app/pull/7'],
    ['upload-server comment shots.json --server https://img.example.com --baseline visual --fail-on changed'],
  ],
  exitCodes: {
    0: 'the comment was written',
    1: 'it was not, or --fail-on found a difference',
    2: 'wrong usage',
    130: 'interrupted (Ctrl-C)',
  },
  notes: `Supports GitHub, GitLab, Gitea and Forgejo. Parallel jobs write separate comments. If the job does not belong to a pull
request, no comment is written and the exit code is 0.`,
  load: () => import('./run.ts'),
})
