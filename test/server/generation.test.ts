import { mkdir, rmdir } from 'node:fs/promises'
import { join } from 'node:path'
import express from 'express'
import { describe, expect, it, onTestFinished } from 'vitest'
import { type LoadedConfig, loadConfig } from '../../src/config/load.ts'
import { trustProxy } from '../../src/config/values.ts'
import { createLog } from '../../src/log.ts'
import { createMask } from '../../src/mask.ts'
import { type RunningServer, startServer } from '../../src/server/index.ts'
import { makeDirectory } from '../helpers/directory.ts'
import { upload } from '../helpers/form.ts'
import { openFilesBelow } from '../helpers/open-files.ts'
import { openSqlite } from '../helpers/sqlite.ts'

const env = {}

function load(directory: string): Promise<LoadedConfig> {
  return loadConfig({
    env: { XDG_DATA_HOME: directory },
    platform: 'linux',
    cwd: directory,
    flags: { server: { port: 0 } },
  })
}

/** One that only Express refuses. */
function unusable(config: LoadedConfig): LoadedConfig {
  const { settings } = config
  return { ...config, settings: { ...settings, server: { ...settings.server, trustProxy: ['nobody'] } } }
}

function withKey(config: LoadedConfig, key: string): LoadedConfig {
  const { settings } = config
  const auth = { ...settings.auth, loopbackExempt: false }
  return { ...config, settings: { ...settings, auth, server: { ...settings.server, key } } }
}

async function start(config: LoadedConfig): Promise<RunningServer> {
  const mask = createMask([])
  const logger = await createLog({ level: 'silent', mask, stream: { write() {} } })
  const server = await startServer(config, { logger, mask, env })
  onTestFinished(async () => void (await server.stop()))
  return server
}

const send = async (server: RunningServer, key: string) =>
  (await upload(`${server.url}/upload?key=${key}`, { 'a.txt': 'hello' })).status

describe('a configuration that something refuses only when it is used', () => {
  it('does not let a server start', async () => {
    const config = await load(await makeDirectory())
    await expect(start(unusable(config))).rejects.toThrow('invalid IP address: nobody')
  })

  it('does not let a server start with a database of another version', async () => {
    const directory = await makeDirectory()
    const config = await load(directory)
    await (await start(config)).stop()
    const database = openSqlite(join(directory, 'upload-server', 'store.db'))
    database.exec('pragma user_version = 0')
    database.close()
    await expect(start(config)).rejects.toThrow('store.db, was made by another version of upload-server')
  })

  it('is taken by a server whose database turned out to be one of another version', async () => {
    const directory = await makeDirectory()
    const path = join(directory, 'upload-server', 'store.db')
    await mkdir(path, { recursive: true }) // so that it can't be opened
    const config = await load(directory)
    const server = await start(config)
    await rmdir(path)
    const database = openSqlite(path)
    database.exec('create table other (id text)')
    database.close()
    expect(await server.reload(withKey(config, 'next'))).toEqual([])
    expect(await send(server, '')).toBe(401)
  })

  it('is not taken by a server that runs', async () => {
    const config = await load(await makeDirectory())
    const server = await start(config)
    await expect(server.reload(unusable(config))).rejects.toThrow('invalid IP address: nobody')
    expect(await send(server, '')).toBe(200)
    await server.reload(withKey(config, 'next'))
    expect([await send(server, ''), await send(server, 'next')]).toEqual([401, 200])
  })
})

describe('reloads', () => {
  it('that come at once take effect one after the other', async () => {
    const config = await load(await makeDirectory())
    const server = await start(config)
    const names = ['first', 'second', 'third']
    const broken = server.reload(unusable(config))
    const reloads = names.map(name => server.reload(withKey(config, name)))
    await expect(broken).rejects.toThrow('invalid IP address: nobody')
    expect(await Promise.all(reloads)).toEqual([[], [], []])
    expect(await Promise.all(names.map(name => send(server, name)))).toEqual([401, 401, 200])
  })

  it('open the store once, however many there are', async () => {
    const directory = await makeDirectory()
    const config = await load(directory)
    const server = await start(config)
    const openFiles = () => openFilesBelow(directory).length
    expect(await send(server, '')).toBe(200)
    const before = openFiles()
    for (let round = 0; round < 5; round++) {
      await server.reload(config)
      expect(await send(server, '')).toBe(200)
    }
    expect(before).toBeGreaterThan(0)
    expect(openFiles(), 'folders that are held are closed by and by').toBeLessThanOrEqual(before)
  })
})

it('Express takes whatever server.trustProxy may hold, and trusts not everybody then', () => {
  const hosts = '10.0.0.1 ::1 fe80::1%eth0 fe80::1%a.b ::ffff:10.0.0.1 :: ::ffff:0.0.0.0 010.0.0.1 0x7f.1'
  const addresses = ['', ...hosts.split(' ')]
  const lengths = '/ /0 /00 /1 /08 /32 /33 /95 /96 /97 /128 /129 /255.0.0.0 /1e1 /-1'
  const bits = ['', '/ 1', ...lengths.split(' ')]
  const names = ['loopback', 'linklocal', 'uniquelocal', 'Loopback', 'localhost', '*', 'loopback, 10.0.0.1']
  const spellings = [...names, ...addresses.flatMap(address => bits.map(one => address + one))]
  const allowed = spellings.filter(one => trustProxy.safeParse(one).success)
  expect(allowed.length).toBeGreaterThan(10)
  for (const one of allowed) {
    const isTrusted = express().set('trust proxy', [one]).get('trust proxy fn')
    const someOf = ['0.0.0.1', '127.0.0.1', '128.0.0.1', '255.255.255.254']
    expect(
      someOf.every(address => isTrusted(address, 0)),
      one,
    ).toBe(false)
  }
})
