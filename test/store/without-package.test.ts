import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { requireSqlite } from '../../src/store/sqlite-library.ts'
import { makeDirectory } from '../helpers/directory.ts'
import { spawnServer } from '../helpers/spawn-server.ts'

const HOOK = new URL('../fixtures/without.mjs', import.meta.url)

it.for([
  [
    '@libsql',
    { driver: 'sqlite' },
    /^The store of the server needs SQLite for \S+, which is not installed\. Run "npm install @libsql\/\S+@[\d.]+"/m,
  ],
  [
    'pg',
    { driver: 'postgres', url: 'postgres://me@127.0.0.1:1/db' },
    /^The store of the server needs the package "pg", which is not installed\. Run "npm install pg"/m,
  ],
] as const)('without %s a server says so instead of starting', async ([name, store, message]) => {
  const directory = await makeDirectory()
  await writeFile(join(directory, 'upload-server.json'), JSON.stringify({ store }))
  const env = { NODE_OPTIONS: `--import=${HOOK}?${name}` }
  const server = await spawnServer(['--port', '0'], { directory, env })
  await expect(server.url).rejects.toThrow()
  expect(await server.exit).toBe(1)
  expect(server.errors()).toMatch(message)
})

it.for([
  ['win32', 'arm64', 'There is no SQLite for win32-arm64: keep the store in PostgreSQL (store.driver).'],
  ['aix', 'ppc64', 'There is no SQLite for aix-ppc64'],
  ['linux', 'arm', 'Run "npm install @libsql/linux-arm-gnueabihf@'],
  ['win32', 'x64', 'Run "npm install @libsql/win32-x64-msvc@'],
] as const)('the package of %s on %s is named', ([platform, arch, message]) => {
  const isHere = platform === process.platform && arch === process.arch
  if (isHere) expect(() => requireSqlite({ platform, arch })).not.toThrow()
  else expect(() => requireSqlite({ platform, arch })).toThrow(message)
})
