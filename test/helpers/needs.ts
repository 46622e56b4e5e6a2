import { accessSync, constants, existsSync } from 'node:fs'
import { delimiter, isAbsolute, resolve } from 'node:path'
import type { TestContext } from 'vitest'

/** Whether a program is on the PATH or in the folders of servers, or a file is at a path. Starts nothing: hundreds of tests ask. */
export function hasProgram(name: string): boolean {
  if (isAbsolute(name)) return existsSync(name) // a module of nginx is not executable
  const folders = [...(process.env['PATH'] ?? '').split(delimiter), '/usr/sbin', '/sbin']
  const files = process.platform === 'win32' ? [name, `${name}.exe`] : [name]
  return folders.some(folder => files.some(file => isExecutable(resolve(folder, file))))
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

/**
 * Call first in a test that needs a Debian package: without the program the test is reported as skipped with the name
 * of what to install, and under CI=true it fails, since CI installs everything. For a program from elsewhere the
 * package is a command that starts with `npm`.
 */
export function needs(context: TestContext, program: string, debianPackage: string): void {
  inSystemTier(context, program)
  if (!hasProgram(program)) missing(context, howToInstall(program, debianPackage))
}

/** `npm test` needs nothing but Node. */
function inSystemTier(context: TestContext, what: string): void {
  if (!/[\\/]test[\\/](?:system|chaos)[\\/]/.test(context.task.file.filepath))
    throw new Error(`This test needs ${what}, so it belongs in test/system.`)
}

/** Programs and files, each with the Debian package that has it. */
export type Needs = readonly (readonly [program: string, debianPackage: string])[]

/** The same for everything that a server of the tests needs: without its modules, it does not start. */
export function needsAll(context: TestContext, all: Needs): void {
  for (const [program, debianPackage] of all) needs(context, program, debianPackage)
}

/** For "beforeAll", which can't skip. */
export const hasAll = (all: Needs): boolean => all.every(([program]) => hasProgram(program))

export function howToInstall(program: string, debianPackage: string): string {
  const how = debianPackage.startsWith('npm ') ? debianPackage : `apt-get install ${debianPackage}`
  return `needs "${program}": ${how}`
}

/** Call first in a test that only root can run. */
export function needsRoot(context: TestContext, what: string): void {
  inSystemTier(context, 'root')
  if (process.getuid?.() !== 0) missing(context, `needs root: ${what}`)
}

/** Call first in a test of what only Linux has: /proc, tmpfs, /dev/full. It is left out elsewhere. */
export function needsLinux(context: TestContext, what: string): void {
  if (process.platform !== 'linux') context.skip(`needs Linux: ${what}`)
}

/** Call first in a test of what Windows has not, and no package could add: it is left out there, in CI, too. */
export function leaveOutOnWindows(context: TestContext, why: string): void {
  if (process.platform === 'win32') context.skip(`Windows: ${why}`)
}

/** Reports a test as skipped, and fails it under CI=true. */
export function missing(context: TestContext, reason: string): never {
  inSystemTier(context, reason)
  if (process.env['CI'] === 'true') throw new Error(reason)
  return context.skip(reason)
}
