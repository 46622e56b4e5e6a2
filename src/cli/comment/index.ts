import { threshold } from '../compare-flags.ts'
import { defineCommand, type Flags } from '../define.ts'
import { file, serverUrl, text } from '../flags.ts'

/** The flags of every command that writes a comment. */
export const commentFlags = {
  pr: {
    about: 'URL of the pull request (default: the one of the CI job)',
    value: text('url'),
    isForAllFiles: true,
  },
  commentName: {
    about:
      'name that identifies the comment, so that each job updates its own (default: the name of the CI job)',
    value: text('name'),
    isForAllFiles: true,
  },
  commentTitle: {
    about: 'heading of the comment (default: Pictures)',
    value: text('title'),
    isForAllFiles: true,
  },
  commentToken: {
    about: 'API token of the Git host (default: the token of the CI job)',
    value: text('token'),
    env: 'UPLOAD_COMMENT_TOKEN',
    isSecret: true,
    isForAllFiles: true,
  },
} as const satisfies Flags

export const flags = {
  compare: {
    about: 'output file of an earlier upload; images of the same path are compared and shown side by side',
    value: { ...file, shown: 'results' },
  },
  threshold: { ...threshold, needs: 'compare' },
  server: { about: 'upload server that has the images, if its IP address is private', value: serverUrl },
  dryRun: { about: 'print the comment instead of posting it' },
  ...commentFlags,
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
  ],
  notes: `Supports GitHub, GitLab, Gitea and Forgejo. Parallel jobs write separate comments. If the job does not belong to a pull
request, no comment is written and the exit code is 0.`,
  exitCodes: { 0: 'success', 1: 'failure', 130: 'interrupted (Ctrl-C)' },
  load: () => import('./run.ts'),
})
