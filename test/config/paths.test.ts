import { homedir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { resolveLocalPath, userConfigFile, userDataDirectory } from '../../src/config/paths.ts'

const cwd = '/somewhere'
const home = homedir()

describe('userConfigFile', () => {
  it.each<[NodeJS.Platform, Record<string, string>, string]>([
    ['linux', {}, join(home, '.config/upload-server/config.json')],
    ['linux', { XDG_CONFIG_HOME: '/cfg' }, '/cfg/upload-server/config.json'],
    ['linux', { XDG_CONFIG_HOME: '' }, join(home, '.config/upload-server/config.json')],
    ['linux', { XDG_CONFIG_HOME: 'relative' }, join(home, '.config/upload-server/config.json')],
    ['linux', { HOME: '/home/other' }, '/home/other/.config/upload-server/config.json'],
    ['freebsd', { XDG_CONFIG_HOME: '/cfg' }, '/cfg/upload-server/config.json'],
    ['darwin', {}, join(home, 'Library/Application Support/upload-server/config.json')],
    ['win32', { APPDATA: '/AppData/Roaming' }, '/AppData/Roaming/upload-server/config.json'],
    ['win32', {}, join(home, 'AppData/Roaming/upload-server/config.json')],
  ])('on %s with %j is %s', (platform, env, file) => {
    expect(userConfigFile({ platform, env, cwd })).toBe(file)
  })
})

describe('userDataDirectory', () => {
  it.each<[NodeJS.Platform, Record<string, string>, string]>([
    ['linux', {}, join(home, '.local/share/upload-server')],
    ['linux', { XDG_DATA_HOME: '/data' }, '/data/upload-server'],
    ['linux', { XDG_DATA_HOME: 'relative' }, join(home, '.local/share/upload-server')],
    ['linux', { HOME: '/home/other' }, '/home/other/.local/share/upload-server'],
    ['darwin', {}, join(home, 'Library/Application Support/upload-server')],
    ['darwin', { HOME: '/Users/other' }, '/Users/other/Library/Application Support/upload-server'],
    ['win32', { LOCALAPPDATA: '/AppData/Local' }, '/AppData/Local/upload-server'],
    ['win32', {}, join(home, 'AppData/Local/upload-server')],
  ])('on %s with %j is %s', (platform, env, directory) => {
    expect(userDataDirectory({ platform, env, cwd })).toBe(directory)
  })
})

describe('resolveLocalPath', () => {
  it.each([
    ['~', home],
    ['~/pictures', join(home, 'pictures')],
    ['~\\pictures', join(home, '\\pictures')],
    ['~someone', '/base/~someone'],
    ['a/~/b', '/base/a/~/b'],
    ['pictures', '/base/pictures'],
    ['./pictures/', '/base/pictures'],
    ['../pictures', '/pictures'],
    ['/srv/pictures', '/srv/pictures'],
    ['', '/base'],
  ])('takes %j to %s', (path, resolved) => {
    expect(resolveLocalPath(path, '/base')).toBe(resolved)
  })
})
