import type { Flags, Value } from './define.ts'
import { file, text } from './flags.ts'

const percentage = {
  shown: 'percent',
  must: 'a number from 0 to 100',
  read(typed: string) {
    const share = typed.trim() === '' ? Number.NaN : Number(typed)
    return share >= 0 && share <= 100 ? share : undefined
  },
} as const satisfies Value

const DIFFERENCES = ['changed', 'new', 'gone', 'renamed'] as const

const differences = {
  shown: 'differences',
  must: `one or more of: ${DIFFERENCES.join(', ')}`,
  read(typed: string) {
    const words = typed.split(',').map(word => word.trim())
    return words.every(word => DIFFERENCES.some(one => one === word)) ? words : undefined
  },
  offers: async () => DIFFERENCES,
} as const satisfies Value

const baselineName = {
  shown: 'name',
  must: 'up to 100 letters, digits, ".", "_" and "-"',
  read: (typed: string) => (/^[a-z\d][\w.-]{0,99}$/i.test(typed) ? typed : undefined),
} as const satisfies Value

const EARLIER = ['compare', 'baseline']

/** The flags of every command that compares images with earlier ones, and shows them in a comment. */
export const reviewFlags = {
  compare: {
    about:
      'compare the images with earlier ones: a folder, or a list of "upload --format json" in a file or at a URL',
    value: { ...file, shown: 'earlier' },
  },
  baseline: {
    about:
      'compare the images with those that the default branch has stored under this name at the same destination',
    value: baselineName,
    excludes: ['compare'],
  },
  updateBaseline: {
    about: 'when to store the images as the baseline (default: auto, in jobs of the default branch)',
    value: { shown: 'when', choices: ['auto', 'always', 'never'] },
    needs: ['baseline'],
  },
  threshold: {
    about: 'percentage of changed pixels up to which an image counts as the same (default: 0)',
    value: percentage,
    needs: EARLIER,
  },
  masks: {
    about:
      'do not compare the parts of images that this JSON file names by path: x, y, width and height in pixels',
    value: file,
    needs: EARLIER,
  },
  report: {
    about:
      'also write a page with all images to this file, such as report.html, and upload it; the comment links it',
    value: file,
  },
  failOn: {
    about: 'exit with 1 if images are changed, new, gone or renamed, such as changed,gone',
    value: differences,
    needs: EARLIER,
    isRepeatable: true,
  },
  status: {
    about: 'set a commit status for the differences that --fail-on names, instead of exit code 1',
    needs: ['failOn'],
  },
  pr: {
    about: 'URL of the pull request (default: the one of the CI job)',
    value: text('url'),
  },
  commentName: {
    about:
      'name that identifies the comment, so that each job updates its own (default: the name of the CI job)',
    value: text('name'),
  },
  commentTitle: {
    about: 'heading of the comment (default: Pictures)',
    value: text('title'),
  },
  commentToken: {
    about: 'API token of the Git host (default: the token of the CI job)',
    value: text('token'),
    env: 'UPLOAD_COMMENT_TOKEN',
    isSecret: true,
  },
} as const satisfies Flags
