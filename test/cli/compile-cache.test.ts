import { chmod, chown, mkdir, readdir, rm, writeFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { userCacheFolder } from '../../src/config/paths.ts'
import { makeDirectory } from '../helpers/directory.ts'
import { leaveOutOnWindows, needsRoot } from '../helpers/needs.ts'
import { runBuilt } from './run-cli.ts'

describe('the folder for compiled code', () => {
  it.each<[NodeJS.Platform, Record<string, string>, string]>([
    ['linux', { HOME: '/home/ada' }, '/home/ada/.cache/upload-server'],
    ['linux', { HOME: '/home/ada', XDG_CACHE_HOME: '/var/cache/ada' }, '/var/cache/ada/upload-server'],
    ['linux', { HOME: '/home/ada', XDG_CACHE_HOME: 'cache' }, '/home/ada/.cache/upload-server'],
    ['linux', { HOME: '/home/ada', XDG_CACHE_HOME: '' }, '/home/ada/.cache/upload-server'],
    ['linux', {}, join(homedir(), '.cache/upload-server')],
    ['darwin', { HOME: '/Users/ada' }, '/Users/ada/Library/Caches/upload-server'],
    ['win32', { HOME: '/c', LOCALAPPDATA: '/c/Local' }, '/c/Local/upload-server/cache'],
  ])('on %s with %j is %s', (platform, env, folder) => {
    expect(userCacheFolder({ env, platform })).toBe(join(folder))
  })

  const keepsCode = 'enableCompileCache' in process.getBuiltinModule('node:module')
  /** Runs a command. Returns what is in the folder afterwards. */
  async function runWith(cwd: string, folder: string): Promise<string[]> {
    const { code, stderr } = await runBuilt(['completion', 'bash'], { cwd, env: { XDG_CACHE_HOME: folder } })
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    return readdir(join(folder, 'upload-server')).catch(() => [])
  }

  it('is made for this user, and used by Node 22.1 and newer', async context => {
    leaveOutOnWindows(context, 'the variable has another name')
    const cwd = await makeDirectory()
    expect(await runWith(cwd, join(cwd, 'new', 'cache'))).toHaveLength(keepsCode ? 1 : 0)
  })

  describe('is not used, because Node runs what is in it,', () => {
    async function runIn(change: (folder: string) => Promise<void>): Promise<string[]> {
      const cwd = await makeDirectory()
      const folder = join(cwd, 'cache')
      const own = join(folder, 'upload-server')
      await mkdir(own, { recursive: true })
      await change(own)
      return runWith(cwd, folder)
    }

    it('if it belongs to another user', async context => {
      needsRoot(context, 'to give a folder away')
      expect(await runIn(folder => chown(folder, 65_534, 65_534))).toEqual([])
    })

    it('if others can write to it', async context => {
      leaveOutOnWindows(context, 'no modes')
      expect(await runIn(folder => chmod(folder, 0o777))).toEqual([])
    })

    it('if it is a file', async () => {
      const makeFile = (folder: string) => rm(folder, { recursive: true }).then(() => writeFile(folder, ''))
      expect(await runIn(makeFile)).toEqual([])
    })
  })
})
