import { open as openWithCallback } from 'node:fs'
import { readdir, rm, stat, utimes } from 'node:fs/promises'
import { join, sep } from 'node:path'
import { promisify } from 'node:util'
import { systemCode } from '../errors.ts'
import { makePath } from './make-path.ts'
import { dropOwner, isGone, newOwner, parseOwner } from './owner.ts'

/** After this long without a sign of life the files of a process on another machine count as abandoned. */
const ABANDONED_MS = 24 * 60 * 60 * 1000
const SIGN_OF_LIFE_MS = 60 * 60 * 1000

/** Without a `FileHandle`, whose calls take longer. */
const open = promisify(openWithCallback)

/** A private directory for temporary files of this process, mode 0700, made when first used. */
export interface Spool {
  readonly directory: string
  /** A new, empty file, mode 0600, open for writing and reading. Whoever takes it closes and removes it. */
  create(): Promise<{ path: string; fd: number }>
  /**
   * Has `make` make something under a name in the directory that is new. It may be called a second time, with another
   * name, when somebody removed the directory. Whoever makes something removes it, also when `make` fails.
   */
  place<T>(make: (path: string) => Promise<T>): Promise<T>
  /** Removes the directory of this process and everything in it. */
  close(): Promise<void>
}

/**
 * Nothing is made or read before the first use.
 *
 * @param directory where the spools of all processes lie
 * @param prepareAround makes what is around `directory`, where its folders need care; each gets mode 0700 otherwise
 */
export function createSpool(directory: string, prepareAround?: () => Promise<unknown>): Spool {
  const name = newOwner()
  const own = join(directory, name)
  let ready: Promise<unknown> | undefined
  let alive: NodeJS.Timeout | undefined
  let count = 0

  async function prepare(): Promise<void> {
    await prepareAround?.()
    await makePath(own, 0o700)
    alive ??= setInterval(
      () => void utimes(own, new Date(), new Date()).catch(() => {}),
      SIGN_OF_LIFE_MS,
    ).unref()
  }

  function prepareOnce(): Promise<unknown> {
    ready ??= prepare().catch(error => {
      ready = undefined
      throw error
    })
    return ready
  }

  const newPath = () => `${own}${sep}${++count}`

  async function place<T>(make: (path: string) => Promise<T>): Promise<T> {
    try {
      await prepareOnce()
      return await make(newPath())
    } catch (error) {
      // Somebody cleaned up around us: make the directory again, once.
      if (systemCode(error) !== 'ENOENT') throw error
      ready = undefined
      await prepareOnce()
      return make(newPath())
    }
  }

  return {
    directory: own,
    create: () => place(async path => ({ path, fd: await open(path, 'wx+', 0o600) })),
    place,
    async close() {
      clearInterval(alive)
      dropOwner(name)
      if (ready !== undefined) await rm(own, { recursive: true, force: true })
    },
  }
}

/**
 * Removes the spools that ended processes left in `directory`: those of this machine whose process is gone (or has
 * the number of this one, as it happens in containers), those of other machines after a day without a sign of life.
 */
export async function sweepSpool(directory: string): Promise<void> {
  const entries = await readdir(directory).catch(() => [])
  for (const entry of entries) {
    const path = join(directory, entry)
    if (!parseOwner(entry)) continue
    const status = await stat(path).catch(() => undefined)
    if (status && isGone(entry, Date.now() - status.mtimeMs, ABANDONED_MS)) {
      await rm(path, { recursive: true, force: true })
    }
  }
}
