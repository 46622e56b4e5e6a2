import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { sqliteModule } from '../../../src/store/sqlite-library.ts'
import { makeDirectory } from '../../helpers/directory.ts'
import { spawnServer } from '../../helpers/spawn-server.ts'

const HOOK = new URL('../../fixtures/without.mjs', import.meta.url)

it.for([
  [
    sqliteModule(),
    { driver: 'sqlite' },
    /^The database of the server needs the package "@photostructure\/sqlite", which is not installed .*update Node to 22\.23/m,
  ],
  [
    'pg',
    { driver: 'postgres', url: 'postgres://me@127.0.0.1:1/db' },
    /^The database of the server needs the package "pg", which is not installed\. Run "npm install --omit=optional pg"/m,
  ],
] as const)('without %s a server says so instead of starting', async ([name, store, message], context) => {
  // The server then needs no package for SQLite, so none can be missing.
  if (name === 'node:sqlite') context.skip('this Node has SQLite in it')
  const directory = await makeDirectory()
  await writeFile(join(directory, 'upload-server.json'), JSON.stringify({ database: store }))
  const env = { NODE_OPTIONS: `--import=${HOOK}?${name.split('/')[0]}` }
  const server = await spawnServer(['--port', '0'], { directory, env })
  await expect(server.url).rejects.toThrow()
  expect(await server.exit).toBe(1)
  expect(server.errors()).toMatch(message)
})

it('without a package that uploads need, a server says so instead of starting', async () => {
  const env = { NODE_OPTIONS: `--import=${HOOK}?multer` }
  const server = await spawnServer(['--port', '0'], { directory: await makeDirectory(), env })
  await expect(server.url).rejects.toThrow()
  expect(await server.exit).toBe(1)
  expect(server.errors()).toMatch(/^Cannot find package 'multer' .*Run "npm install"/m)
})
