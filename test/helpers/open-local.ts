import { readdir, realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished } from 'vitest'
import type { OpenTarget } from '../../src/providers/contract.ts'
import { local } from '../../src/providers/local/index.ts'
import { makeDirectory } from './directory.ts'

type Options = Partial<Omit<Parameters<typeof local.open>[0], 'directory'>>

/** A target that does not wait for the disk unless told so. Warnings fail the test. */
export async function openLocal(
  directory: string,
  options: Options = {},
  name = 'Default',
): Promise<OpenTarget> {
  const config = local.config.parse({ directory, serve: true, durable: false, ...options })
  const warn = (message: string) => expect.fail(message)
  return await local.open(config, { name, warn })
}

/** A target on a new folder; both are gone after the test. */
export async function openFresh(options: Options = {}): Promise<{ target: OpenTarget; directory: string }> {
  const directory = join(await makeRealDirectory(), 'pictures')
  const target = await openLocal(directory, options)
  onTestFinished(() => target.close?.())
  return { target, directory }
}

export async function makeRealDirectory(): Promise<string> {
  return await realpath(await makeDirectory())
}

/** Writes into the spool of a target. @returns the path of the file */
export async function spoolPayload(target: OpenTarget, bytes: Buffer): Promise<string> {
  const file = await target.spool?.create()
  if (!file) return expect.fail('local has a spool')
  await file.file.writeFile(bytes)
  await file.file.close()
  return file.path
}

/** Every file below a directory, temporary ones among them. */
export async function listFiles(directory: string): Promise<string[]> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true })
  return entries.filter(entry => !entry.isDirectory()).map(entry => join(entry.parentPath, entry.name))
}
