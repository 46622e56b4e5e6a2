import { mkdir, readdir, realpath, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeEach, expect, it } from 'vitest'
import type { HistoryEntry } from '../../../src/store/contract.ts'
import type { Database } from '../../../src/store/database.ts'
import { openSqlite } from '../../../src/store/sqlite.ts'
import { makeDirectory } from '../../helpers/directory.ts'
import { needs } from '../../helpers/needs.ts'
import { runOnTerminal } from '../../helpers/pty.ts'
import { BIN } from '../../helpers/spawn-server.ts'
import { addEntry, closed, jobAt } from '../../helpers/stores.ts'

let cwd: string
let database: Database

beforeEach(async () => {
  cwd = await makeDirectory()
  const local = (name: string) => ({ directory: name, serve: true })
  const config = {
    default: 'local/main',
    database: { path: 'store.db' },
    providers: {
      local: { main: local('main'), copy: local('copy') },
      imgur: { a: { clientId: 'x' } },
    },
  }
  await writeFile(join(cwd, 'upload-server.json'), JSON.stringify(config))
  database = closed(openSqlite(join(cwd, 'store.db')))
})

const linkOf = (key: string) => `http://127.0.0.1:36677/files/main/${key}`

const locationOf = async (name: string) => `file:${await realpath(cwd)}/${name}/`

const START = Date.now()

/** Entries of one job, and their files. */
async function remember(job: string, ...changes: Partial<HistoryEntry>[]): Promise<void> {
  for (const [index, change] of changes.entries()) {
    const { key = 'a.png', destination = 'local/main' } = change
    const [type, name = ''] = destination.split('/')
    if (type === 'local') {
      await mkdir(join(cwd, name, key, '..'), { recursive: true })
      await writeFile(join(cwd, name, key), 'png')
    }
    await addEntry(database, {
      ...{ jobId: jobAt(change.time ?? START, job), requestId: `request-${job}`, index, origin: key, key },
      ...{ url: linkOf(key), destination, location: await locationOf(name), ...change },
    })
  }
}

async function files(): Promise<string[]> {
  const lists = ['main', 'copy'].map(async folder =>
    (await readdir(join(cwd, folder), { recursive: true, withFileTypes: true }).catch(() => []))
      .filter(entry => entry.isFile())
      .map(entry => join(entry.parentPath, entry.name).slice(cwd.length + 1)),
  )
  return (await Promise.all(lists)).flat().sort()
}

it('a person is asked, and shown what would go', async context => {
  needs(context, 'python3', 'python3')
  await remember('job1', {})
  const ask = (answer: string) =>
    runOnTerminal(
      ['env', `HOME=${cwd}`, process.execPath, BIN, 'remove', 'a.png', '-c', 'upload-server.json'],
      [['Permanently delete this file?', answer]],
      cwd,
    )
  const no = await ask('n')
  expect(no).toMatchObject({ exitCode: 1, stdout: expect.stringContaining('remove    local/main  a.png') })
  expect(await files()).toEqual(['main/a.png'])
  expect((await ask('y')).exitCode).toBe(0)
  expect(await files()).toEqual([])
})
