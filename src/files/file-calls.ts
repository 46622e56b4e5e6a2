import * as fs from 'node:fs'
import { stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { promisify } from 'node:util'
import type { FileIdentity } from './own-paths.ts'

type Result<T> = T | Promise<T>

/** System calls for small files. They use file descriptors, because the calls of a `FileHandle` take longer. */
export interface FileCalls {
  open(path: string, flags: string, mode: number): Result<number>
  /** @returns the number of bytes written, which may be less than all of them */
  writev(file: number, chunks: readonly Uint8Array[]): Result<number>
  close(file: number): Result<void>
  rename(from: string, to: string): Result<void>
  stat(path: string): Result<FileIdentity>
}

const writev = promisify(fs.writev)

/** They run in threads, and the server does other work meanwhile. */
export const asynchronousCalls: FileCalls = {
  open: promisify(fs.open),
  writev: async (file, chunks) => (await writev(file, chunks)).bytesWritten,
  close: promisify(fs.close),
  rename: promisify(fs.rename),
  stat: promisify(fs.stat) as (path: string) => Promise<fs.Stats>,
}

/**
 * They run in the event loop. For a small file, starting a thread takes longer than its work, but the server waits for the
 * disk. So they are only for a disk that the server waits for anyway.
 */
export const synchronousCalls: FileCalls = {
  open: fs.openSync,
  writev: (file, chunks) => fs.writevSync(file, chunks),
  close: fs.closeSync,
  rename: fs.renameSync,
  stat: path => fs.statSync(path),
}

/** Appends chunks to an open file, in as few calls as possible. */
export async function writeAll(
  file: number,
  chunks: readonly Uint8Array[],
  { writev }: Pick<FileCalls, 'writev'> = asynchronousCalls,
): Promise<void> {
  let rest = chunks
  while (rest.length > 0) rest = after(rest, await writev(file, rest))
}

function after(chunks: readonly Uint8Array[], bytes: number): Uint8Array[] {
  const rest: Uint8Array[] = []
  let skipped = bytes
  for (const chunk of chunks) {
    if (skipped < chunk.length) rest.push(chunk.subarray(skipped))
    skipped = Math.max(0, skipped - chunk.length)
  }
  return rest
}

/** Whether two paths are on the same file system. Where nothing exists yet, the nearest folder above counts. */
export async function areOnSameDisk(one: string, other: string): Promise<boolean> {
  return (await deviceOf(one)) === (await deviceOf(other))
}

async function deviceOf(path: string): Promise<number | undefined> {
  const status = await stat(path).catch(() => undefined)
  const around = dirname(path)
  return status || around === path ? status?.dev : deviceOf(around)
}
