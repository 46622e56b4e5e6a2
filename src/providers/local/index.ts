import { randomUUID } from 'node:crypto'
import { lstat, realpath, rmdir, unlink } from 'node:fs/promises'
import { basename, dirname, join, resolve, sep } from 'node:path'
import { inMemory } from '../../body.ts'
import { systemCode } from '../../errors.ts'
import { ignoreCodes } from '../../files/folder-sync.ts'
import type { HeldFile } from '../../files/held.ts'
import { createOwnCheck, ownPathsIn } from '../../files/own-paths.ts'
import { once } from '../../flow/once.ts'
import { fileMode, folderMode, localPath, modeOf } from '../../options.ts'
import * as z from '../../packages/zod.ts'
import { createSpool, sweepSpool } from '../../payload/spool.ts'
import { Problem } from '../../problem.ts'
import { defineProvider, type OpenTarget, type ProviderDeps } from '../contract.ts'
import { checkKey } from '../shared/check-key.ts'
import { explain } from '../shared/explain.ts'
import { HASHED_NAME, joinFolder } from '../shared/picgo-options.ts'
import { encodeKey, encodeSegment, joinUrl, urlPrefix } from '../shared/public-url.ts'
import { explained } from './explain.ts'
import { ABSENT, createFolders } from './folders.ts'
import { findPathFault } from './key-path.ts'
import { createWriter } from './writer.ts'

/** Folder of the temporary files. Object keys can't refer to it, because no segment starts with a dot. */
const SPOOL_NAME = '.upload-server'

const PROBE = inMemory(Buffer.from('upload-server'))

const config = z.object({
  directory: localPath().describe('Folder to store files in. Created if it does not exist.'),
  serve: z
    .boolean()
    .default(false)
    .describe('Serve the files under /files/ of this server and return URLs to it.'),
  urlPrefix: urlPrefix()
    .optional()
    .describe(
      'Public base URL at which a web server serves the folder. Returned URLs start with it, also if "serve" is true.',
    ),
  durable: z
    .boolean()
    .default(true)
    .describe(
      'Write files durably (fsync) before the server responds, so that they survive a power failure.',
    ),
  fileMode: fileMode()
    .default('0644')
    .describe('Permissions of stored files. Octal; independent of the umask.'),
  directoryMode: folderMode()
    .default('0755')
    .describe('Permissions of created folders. Octal; independent of the umask.'),
})

/** A folder on this machine. */
export const local = defineProvider({
  type: 'local',
  connects: false,
  about: {
    family: 'folder',
    what: 'a local folder, served by this server or by a web server',
    testedAgainst: 'ext4, tmpfs and a full file system',
    choices: [
      {
        label: 'A folder on this machine',
        hint: 'served by this server',
        options: { serve: true },
        asks: ['directory'],
      },
      {
        label: 'A folder on this machine, served by a web server',
        hint: 'nginx, Apache, Caddy',
        asks: ['directory', 'urlPrefix'],
      },
    ],
  },
  config,
  validate: options =>
    options.serve || options.urlPrefix !== undefined
      ? undefined
      : 'Set "serve" to true, or set "urlPrefix". Otherwise stored files have no URL.',
  open: async (options, deps) => openFolder(options, deps, await locationOf(resolve(options.directory))),
  picgo(old) {
    const site = old.url('customUrl')
    if (site === undefined)
      old.note('This server serves the files under "/files/", because no "customUrl" was imported.')
    return {
      directory: old.text('path'),
      ...(site === undefined ? { serve: true } : { urlPrefix: joinFolder(site, old.folder('webPath')) }),
      // PicList stores files directly in its folder, without folders by date.
      keyTemplate: HASHED_NAME,
    }
  },
})

/** Returns `location` by the real path of the folder, which need not exist. */
async function locationOf(directory: string): Promise<string> {
  const real = (await realOf(directory)).split(sep).join('/')
  return `file:${real.replace(/\/$/, '')}/`
}

async function realOf(path: string): Promise<string> {
  try {
    return await realpath(path)
  } catch {
    const around = dirname(path)
    return around === path ? path : join(await realOf(around), basename(path))
  }
}

function openFolder(
  options: z.output<typeof config>,
  { name, warn, ownPaths = [] }: ProviderDeps,
  location: string,
): OpenTarget {
  const { serve, urlPrefix, durable } = options
  const directory = resolve(options.directory)
  const spoolPath = join(directory, SPOOL_NAME)
  const folders = createFolders(directory, modeOf(options.directoryMode), durable)
  const spool = createSpool(
    spoolPath,
    work => folders.make(spoolPath, ({ path }) => work(path), 0o700),
    `The disk with the folder of "local/${name}"`,
  )
  /** Recognizes files of the server itself, whose configuration may be in the same folder. */
  const getOwnCheck = once(async () => createOwnCheck(await ownPathsIn(directory, ownPaths)))
  const write = createWriter({
    spool,
    async admit(path) {
      const isOwn = await getOwnCheck()
      if (await isOwn(path))
        throw new Problem(`"${basename(path)}" is a file of the server itself`, {
          advice: 'Change the key template, or use a separate folder for uploads.',
        })
    },
    fileMode: modeOf(options.fileMode),
    durable,
  })
  const cleanup = sweepSpool(spoolPath).catch(error =>
    warn(
      `local/${name}: could not remove the temporary files of an earlier run in "${SPOOL_NAME}" (${systemCode(error)}).`,
    ),
  )
  const traits = { atomic: true, keyFault: (key: string) => findPathFault(key) }
  const toUrl = (key: string): string =>
    urlPrefix === undefined ? `files/${encodeSegment(name)}/${encodeKey(key)}` : joinUrl(urlPrefix, key)

  const placeOf = (key: string) => {
    const path = join(directory, key)
    return { folder: dirname(path), file: basename(path) }
  }

  /** Runs work with the path of an object. Links among its folders are followed, but not a link with its own name. */
  async function find<T>(key: string, work: (path: string) => Promise<T>): Promise<T | undefined> {
    const { folder, file } = placeOf(key)
    return folders.find(folder, ({ path }) => work(join(path, file)).catch(ignoreCodes(ABSENT)))
  }

  async function locate(key: string): Promise<HeldFile | undefined> {
    checkKey(key, traits)
    const { folder, file } = placeOf(key)
    const [isOwn, found] = [await getOwnCheck(), await folders.open(join(folder, file))]
    if (found?.status.isFile() && !(await isOwn(found.real, found.status))) return found
    await found?.close()
    return undefined
  }

  return {
    location,
    traits,
    spool: {
      ...spool,
      isLinked: true,
      create: () =>
        explained(() => spool.create()).catch(error => {
          throw explain(error, `local/${name}`, 'create a temporary file')
        }),
    },
    put: (object, signal) =>
      explained(async () => {
        const { folder, file } = placeOf(object.key)
        await cleanup
        await write(object, work => folders.make(folder, work), file, signal)
        return { url: toUrl(object.key) }
      }),
    exists: key => explained(async () => (await find(key, path => lstat(path))) !== undefined),
    remove: key => explained(() => find(key, path => unlink(path))),
    check: signal =>
      explained(async () => {
        const probe = `.${randomUUID()}`
        await write(PROBE, work => folders.make(directory, work), probe, signal)
        await folders.find(directory, ({ path }) => unlink(join(path, probe)))
      }),
    ...(serve && {
      locate: key =>
        locate(key).catch(error => {
          // The object key is invalid, or a link leads out of the folder.
          if (!(error instanceof Problem)) throw error
          return undefined
        }),
    }),
    async close() {
      await cleanup
      await spool.close()
      await rmdir(spoolPath).catch(() => {}) // it is not empty while another process uses it
    },
  }
}
