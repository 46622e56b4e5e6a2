import { accessSync, closeSync, constants, openSync, readSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { systemCode } from '../errors.ts'
import { SCHEMA_VERSION } from './migrate.ts'

/**
 * `PRAGMA user_version` of a file whose jobs are all over and which no process of ours uses; otherwise it is 0. One that a
 * program with another schema left is opened at the start, to be brought up to date or refused.
 */
export const AT_REST = SCHEMA_VERSION
/** Where it stands in the file: https://sqlite.org/fileformat2.html#the_database_header */
const OFFSET = 60

/** Files that this process has open, or had. */
const connected = new Set<string>()

/** To be called before a file is opened by SQLite. */
export function noteConnection(path: string): void {
  connected.add(path)
}

/** Whether jobs may wait in an SQLite file, told without SQLite. False when that is certain. */
export function mayHoldJobs(path: string): boolean {
  // Closing the file would drop the locks that SQLite has on it in this process.
  if (connected.has(path)) return true
  try {
    assertWritable(path)
    if (sizeOf(`${path}-wal`) > 0) return true
    return sizeOf(path) > 0 && readMark(path) !== AT_REST
  } catch {
    return true // whoever opens it is told what is wrong
  }
}

/** The file or, as long as there is none, the folder that it is made in. */
function assertWritable(path: string): void {
  try {
    accessSync(path, constants.W_OK)
  } catch (error) {
    if (systemCode(error) !== 'ENOENT' || dirname(path) === path) throw error
    assertWritable(dirname(path))
  }
}

/** 0 when there is no such file. */
function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0
}

function readMark(path: string): number {
  const file = openSync(path, 'r')
  try {
    const mark = Buffer.alloc(4)
    readSync(file, mark, 0, mark.length, OFFSET)
    return mark.readUInt32BE()
  } finally {
    closeSync(file)
  }
}
