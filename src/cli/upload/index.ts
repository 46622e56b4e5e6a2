import { FORMATS } from '../../client/reports/format.ts'
import { CLIENT_DEFAULTS } from '../../client/uploads.ts'
import { showDuration } from '../../times.ts'
import { defineCommand, type Flags, type Value } from '../define.ts'
import {
  choice,
  config,
  count,
  countFrom,
  credentials,
  duration,
  file,
  grouped,
  serverUrl,
  text,
} from '../flags.ts'
import { reviewFlags } from '../review-flags.ts'

const MOST_SHARDS = 200

const destinationFlags = {
  ...choice,
  path: { about: 'folder for the files; replaces {path} in the key template', value: text('folder') },
  expires: {
    about: 'delete the files after this time: 90m, 12h, 14d, never, or an RFC 3339 timestamp',
    value: text('when'),
  },
} as const satisfies Flags

const fileFlags = {
  name: { about: 'store the one file, or standard input, under this name', value: text('name') },
  keepFolders: {
    about: 'keep the folders of the files, as given on the command line, below --path',
  },
  stripComponents: {
    about: 'with --keep-folders: remove the first n folders',
    value: count,
    needs: ['keepFolders'],
  },
  filesFrom: {
    about:
      'also upload the files named in this file, or in standard input (-), separated by line breaks or NUL',
    value: file,
    isOnce: true,
    isForAllFiles: true,
  },
  allowEmpty: { about: 'exit with 0 if there is nothing to upload' },
} as const satisfies Flags

const outputFlags = {
  format: {
    about: 'what to print on standard output',
    value: { shown: 'format', choices: FORMATS },
    default: 'url',
  },
  copy: { about: 'copy the links to the clipboard' },
  notify: { about: 'show a desktop notification with the result' },
  quiet: { short: '-q', about: 'print no line per file on standard error, only failures' },
  softFail: { about: 'exit with 0 even if files could not be stored' },
} as const satisfies Flags

const reportFlags = {
  githubOutput: {
    about: 'append url, urls, markdown, json, results, stored and failed to the file in GITHUB_OUTPUT',
  },
  githubSummary: { about: 'append Markdown to the file in GITHUB_STEP_SUMMARY' },
  gitlabDotenv: {
    about: 'write UPLOAD_URL, UPLOAD_URL_1…, UPLOAD_STORED and UPLOAD_FAILED for GitLab',
    value: file,
    isForAllFiles: true,
  },
  junit: { about: 'write a JUnit report with one test case per file', value: file, isForAllFiles: true },
} as const satisfies Flags

const shard = {
  shown: 'n/all',
  must: `the number of a shard and of all shards, such as 2/4, up to ${MOST_SHARDS}`,
  read(typed: string) {
    const [, index = 0, of = 0] = (/^(\d{1,3})\/(\d{1,3})$/.exec(typed) ?? []).map(Number)
    return index >= 1 && of >= index && of <= MOST_SHARDS ? { index, of } : undefined
  },
} as const satisfies Value

const pullRequestFlags = {
  comment: {
    about: 'create or update a comment on the pull request that shows the images',
  },
  ...reviewFlags,
  shard: {
    about:
      'part of a test run, such as 2/4: all parts write one comment, one report, one status and one baseline',
    value: shard,
    needs: ['comment', 'report', 'baseline'],
  },
} as const satisfies Flags

const serverFlags = {
  server: { about: 'upload through a running server', value: serverUrl },
  ...credentials,
  concurrency: {
    about: 'number of parallel requests, 1 to 64',
    value: countFrom(1, 64),
    default: `${CLIENT_DEFAULTS.concurrency}`,
    needs: ['server'],
  },
  retryMaxTime: {
    about: 'keep retrying transient failures for this long, such as 90s or 10m; 0 disables retries',
    value: duration,
    default: showDuration(CLIENT_DEFAULTS.retryFor),
    needs: ['server'],
  },
  wait: { about: 'wait until the server is up, for at most --retry-max-time', needs: ['server'] },
  job: {
    about: 'ID of the job; within 24 hours, a job never stores a file twice (default: the ID of the CI run)',
    value: text('id'),
    needs: ['server', 'shard'],
  },
} as const satisfies Flags

export const flags = {
  config,
  ...grouped('Destination', destinationFlags),
  ...grouped('Files', fileFlags),
  ...grouped('Output', outputFlags),
  ...grouped('Reports', reportFlags),
  ...grouped('Pull request comment', pullRequestFlags, { isForAllFiles: true }),
  ...grouped('Running server', serverFlags),
} as const satisfies Flags

export const upload = defineCommand({
  name: 'upload',
  about: 'upload files, directly or through a running server, and print one link per line',
  arg: {
    spelling: '[file...]',
    about:
      'files, folders, glob patterns, URLs, or - for standard input; !pattern excludes files (default: the clipboard)',
    offers: 'file',
  },
  flags,
  examples: [
    ['upload-server upload *.png', 'one link per line, in the same order'],
    ['upload-server upload', 'the image in the clipboard'],
    ['grim - | upload-server upload - --name screen.png --copy --notify'],
    ['upload-server upload a.png --format markdown --destination s3/blog'],
    ["upload-server upload --server https://img.example.com screenshots/ 'out/**/*.png' '!**/*-diff.png'"],
    ['upload-server upload --server https://img.example.com --token-from github-actions shots/'],
    ['upload-server upload --server https://img.example.com --token-from ./token.sh shots/'],
    ['upload-server upload --keep-folders --strip-components 1 report/'],
    ['upload-server upload --comment --baseline visual shots/', 'compare with the default branch'],
    ['upload-server upload --comment --compare main/ --threshold 0.1 --fail-on changed,gone shots/'],
    ['upload-server upload --comment --baseline visual --shard 2/4 shots/', 'one comment for 4 jobs'],
    ['git diff -z --name-only | upload-server upload --files-from - --allow-empty'],
  ],
  exitCodes: {
    0: 'all files were stored',
    1: 'none was stored, or --fail-on found a difference',
    2: 'wrong usage',
    3: 'only some were stored',
    4: "the server can't be reached",
    5: 'the server rejected the upload key or token, or there is no token',
    130: 'interrupted (Ctrl-C)',
  },
  load: () => import('./run.ts'),
})
