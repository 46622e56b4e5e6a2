import { homedir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { resolveLocalPath, userConfigFile, userDataDirectory } from '../../src/config/paths.ts'

const cwd = '/somewhere'
const home = homedir()

const MAC = 'Library/Application Support/upload-server'
const [CONFIG, DATA] = ['.config/upload-server', '.local/share/upload-server']

it.each<[NodeJS.Platform, Record<string, string>, config: string, data: string]>([
  ['linux', {}, join(home, CONFIG), join(home, DATA)],
  ['linux', { XDG_CONFIG_HOME: '/cfg', XDG_DATA_HOME: '/data' }, '/cfg/upload-server', '/data/upload-server'],
  ['linux', { XDG_CONFIG_HOME: '', XDG_DATA_HOME: '' }, join(home, CONFIG), join(home, DATA)],
  ['linux', { XDG_CONFIG_HOME: 'relative', XDG_DATA_HOME: 'relative' }, join(home, CONFIG), join(home, DATA)],
  ['linux', { HOME: '/home/other' }, join('/home/other', CONFIG), join('/home/other', DATA)],
  ['freebsd', { XDG_CONFIG_HOME: '/cfg' }, '/cfg/upload-server', join(home, DATA)],
  ['darwin', {}, join(home, MAC), join(home, MAC)],
  ['darwin', { HOME: '/Users/other' }, join('/Users/other', MAC), join('/Users/other', MAC)],
  ['win32', { APPDATA: '/R', LOCALAPPDATA: '/L' }, '/R/upload-server', '/L/upload-server'],
  ['win32', {}, join(home, 'AppData/Roaming/upload-server'), join(home, 'AppData/Local/upload-server')],
])('on %s with %j, configurations are in %s and data in %s', (platform, env, config, data) => {
  expect(userConfigFile({ platform, env, cwd })).toBe(join(config, 'config.json'))
  expect(userDataDirectory({ platform, env, cwd })).toBe(data)
})

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
])('the path %j is %s', (path, resolved) => {
  expect(resolveLocalPath(path, '/base')).toBe(resolved)
})
