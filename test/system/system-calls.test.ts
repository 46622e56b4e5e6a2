import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { needs } from '../helpers/needs.ts'

const PROGRAM = fileURLToPath(new URL('../../bench/system-calls.mjs', import.meta.url))

type Counts = Record<string, number>

/** How often an upload did one of these, each counted a tenth more at most for what happens now and then. */
const sum = (calls: Counts, ...names: string[]) =>
  names.reduce((total, name) => total + (calls[name] ?? 0), 0)

it('an upload does not ask more of the file system than it needs', { timeout: 120_000 }, async context => {
  needs(context, 'strace', 'strace')
  const { stdout } = await promisify(execFile)(process.execPath, [PROGRAM, '--json'])
  const [small, large, smallDurable, largeDurable] = JSON.parse(stdout).map(
    (result: { calls: Counts }) => result.calls,
  ) as [Counts, Counts, Counts, Counts]

  for (const calls of [small, smallDurable]) {
    // The file under a private name, then under its own. The store and what goes on beside uploads have a few.
    expect(sum(calls, 'rename', 'renameat', 'renameat2')).toBeLessThan(1.2)
    expect(sum(calls, 'mkdir', 'mkdirat', 'link', 'unlink', 'chmod', 'fchmod')).toBeLessThan(0.5)
    // Whether what was opened is a folder. Whether the file of the store is still there is asked now and then.
    expect(sum(calls, 'stat', 'lstat', 'fstat', 'statx', 'newfstatat')).toBeLessThan(1.5)
  }
  // The file and its folder.
  expect(sum(small, 'open', 'openat')).toBeLessThan(2.5)
  expect(sum(small, 'fsync', 'fdatasync')).toBeLessThan(0.5)
  expect(sum(smallDurable, 'open', 'openat')).toBeLessThan(3.5)
  expect(sum(smallDurable, 'fsync', 'fdatasync')).toBeGreaterThan(1)
  expect(sum(smallDurable, 'fsync', 'fdatasync')).toBeLessThan(2.5)
  // The body is read from a socket that is never stopped.
  expect(sum(small, 'epoll_ctl')).toBeLessThan(1)
  // The database: two commits, which uploads at the same time share.
  expect(sum(small, 'pwrite64', 'fcntl')).toBeLessThan(40)

  for (const calls of [large, largeDurable]) {
    // Written once, in pieces of 256 KiB, and linked into its place.
    expect(sum(calls, 'writev', 'pwritev')).toBeLessThan(40)
    expect(sum(calls, 'link', 'linkat')).toBeLessThan(1.2)
    expect(sum(calls, 'unlink', 'unlinkat')).toBeLessThan(2.5)
  }
})
