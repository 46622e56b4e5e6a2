import type { Flag, Flags, Value } from './define.ts'
import { file } from './flags.ts'

const percentage = {
  shown: 'percent',
  read(typed: string): number {
    const share = typed.trim() === '' ? Number.NaN : Number(typed)
    if (!(share >= 0 && share <= 100)) throw new Error('Must be a number from 0 to 100.')
    return share
  },
} as const satisfies Value

export const threshold = {
  about: 'percentage of changed pixels up to which an image counts as the same (default: 0)',
  value: percentage,
} as const satisfies Flag

const DIFFERENCES = ['changed', 'new', 'gone', 'renamed'] as const

const differences = {
  shown: 'differences',
  read(typed: string): readonly string[] {
    const words = typed.split(',').map(word => word.trim())
    if (!words.every(word => DIFFERENCES.some(one => one === word)))
      throw new Error(`Available: ${DIFFERENCES.join(', ')}.`)
    return words
  },
  offers: async () => DIFFERENCES,
} as const satisfies Value

const baselineName = {
  shown: 'name',
  read(typed: string): string {
    if (!/^[a-z\d][\w.-]{0,99}$/i.test(typed))
      throw new Error('Must have letters, digits, ".", "_" and "-" only, and up to 100 of them.')
    return typed
  },
} as const satisfies Value

const needsEarlier =
  (flag: string): NonNullable<Flag['findFault']> =>
  ({ compare, baseline }) =>
    compare === undefined && baseline === undefined ? `${flag} requires --compare or --baseline.` : undefined

/** The flags of every command that compares images with earlier ones. */
export const compareFlags = {
  compare: {
    about:
      'compare the images with earlier ones: a folder, or a list of "upload --format json" in a file or at a URL',
    value: { ...file, shown: 'earlier' },
    isForAllFiles: true,
  },
  baseline: {
    about:
      'compare the images with those that the default branch has stored under this name at the same destination',
    value: baselineName,
    excludes: ['compare'],
    isForAllFiles: true,
  },
  updateBaseline: {
    about: 'when to store the images as the baseline (default: auto, in jobs of the default branch)',
    value: { shown: 'when', choices: ['auto', 'always', 'never'] },
    needs: 'baseline',
    isForAllFiles: true,
  },
  threshold: {
    ...threshold,
    findFault: needsEarlier('--threshold'),
    isForAllFiles: true,
  },
  masks: {
    about:
      'do not compare the parts of images that this JSON file names by path: x, y, width and height in pixels',
    value: file,
    findFault: needsEarlier('--masks'),
    isForAllFiles: true,
  },
  report: {
    about:
      'also write a page with all images to this file, such as report.html, and upload it; the comment links it',
    value: file,
    isForAllFiles: true,
  },
  failOn: {
    about: 'exit with 1 if images are changed, new, gone or renamed, such as changed,gone',
    value: differences,
    findFault: needsEarlier('--fail-on'),
    isRepeatable: true,
    isForAllFiles: true,
  },
} as const satisfies Flags
