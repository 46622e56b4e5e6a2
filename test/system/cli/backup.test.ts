import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeEach, describe, expect, it } from 'vitest'
import { backUpSqlite } from '../../../src/store/backup.ts'
import { runCli } from '../../cli/run-cli.ts'
import { makeDirectory } from '../../helpers/directory.ts'
import { readBlocks } from '../../helpers/documents.ts'
import { mountSmall } from '../../helpers/mount-small.ts'
import { runProgram } from '../../helpers/run-program.ts'
import { fillSqlite } from '../../helpers/sqlite.ts'
import { newDatabase, postgresOfFile } from '../../helpers/stores.ts'
import { findPostgres } from '../../servers/postgres.ts'

let cwd: string
beforeEach(async () => {
  cwd = await makeDirectory()
})

const never = new AbortController().signal
const config = (more: object = {}) => ({
  server: { port: 0 },
  providers: { local: { Default: { directory: 'files', serve: true } } },
  ...more,
})
const configure = (text: object) => writeFile(join(cwd, 'upload-server.json'), JSON.stringify(text))

describe('a backup of a database', () => {
  it('to a disk that becomes full says so and leaves nothing', async context => {
    const disk = join(cwd, 'disk')
    await mountSmall(context, disk, '1m')
    const path = join(cwd, 'a.db')
    fillSqlite(path, 1000).close()
    await expect(backUpSqlite(path, join(disk, 'backup.db'), never)).rejects.toThrow(
      /^Could not write the backup ".*backup\.db": the disk is full or has failed \(SQLITE_\w+\)\. Free some space/,
    )
    expect(await readdir(disk)).toEqual([])
  })
})

describe('the commands of docs/guides/backup-and-restore.md', () => {
  const start = postgresOfFile()

  it('move the history from one PostgreSQL database to an empty one', async context => {
    const server = await start(context)
    const [DATABASE_URL, NEW_DATABASE_URL] = [await newDatabase(server), await newDatabase(server)]
    const env = { DATABASE_URL, NEW_DATABASE_URL, PATH: `${await findPostgres()}:${process.env['PATH']}` }
    await configure(config({ database: { driver: 'postgres', url: DATABASE_URL } }))
    await writeFile(join(cwd, 'a.txt'), 'a')
    expect(await runCli(['upload', 'a.txt'], { cwd })).toMatchObject({ code: 0 })
    const guide = await readFile('docs/guides/backup-and-restore.md', 'utf8')
    const commands = readBlocks(guide).filter(({ kind }) => kind === 'sh by=postgres')
    expect(commands.map(({ code }) => code.split(' ')[0])).toEqual(['pg_dump', 'pg_restore'])
    for (const { code } of commands)
      expect(await runProgram('sh', ['-euc', code], { cwd, env })).toMatchObject({ exitCode: 0, stderr: '' })
    await configure(config({ database: { driver: 'postgres', url: NEW_DATABASE_URL } }))
    expect((await runCli(['history'], { cwd })).stdout).toContain('a.txt')
  })
})
