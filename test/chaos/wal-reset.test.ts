import { spawn } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { openSqlite as openDatabase } from '../../src/store/sqlite.ts'
import { makeDirectory } from '../helpers/directory.ts'
import { openSqlite } from '../helpers/sqlite.ts'

const WRITER = fileURLToPath(new URL('../fixtures/store-writer.mjs', import.meta.url))
const WRITERS = 4
const KILLS = 10
const UPLOADS = 1000

/** @returns the uploads that it said were committed */
function startWriter(path: string) {
  const writer = spawn(process.execPath, [WRITER, path])
  const errors = text(writer.stderr)
  const ended = once(writer, 'exit')
  let said = ''
  writer.stdout.on('data', data => {
    said += data
  })
  return {
    uploads: () => said.split('\n').slice(0, -1),
    async kill() {
      writer.kill('SIGKILL')
      expect(await ended, await errors).toEqual([null, 'SIGKILL'])
    },
  }
}

it('four processes that write and checkpoint at one file and are killed: every commit is there, and the file is sound', async () => {
  const path = join(await makeDirectory(), 'store.db')
  const first = openDatabase(path)
  await first.tx(db => db.now())
  const all: ReturnType<typeof startWriter>[] = []
  const start = () => {
    const writer = startWriter(path)
    all.push(writer)
    return writer
  }
  const count = () => all.reduce((sum, writer) => sum + writer.uploads().length, 0)
  const running = Array.from({ length: WRITERS }, start)
  for (let kills = 0; kills < KILLS || count() < UPLOADS; kills++) {
    await expect.poll(() => running.every(writer => writer.uploads().length > 0)).toBe(true)
    await sleep(randomInt(100))
    const place = randomInt(WRITERS)
    await running[place]?.kill()
    running[place] = start()
  }
  await Promise.all(running.map(writer => writer.kill()))
  await first.close()

  const database = openSqlite(path)
  expect(database.prepare('pragma integrity_check').all()).toEqual([{ integrity_check: 'ok' }])
  const finished = database.prepare("select id from uploads where state = 'done'").all()
  const kept = database.prepare('select upload as id from files').all()
  database.close()
  const committed = all.flatMap(writer => writer.uploads())
  const idsOf = (rows: { id: string }[]) => new Set(rows.map(({ id }) => id))
  for (const rows of [finished, kept]) {
    const ids = idsOf(rows)
    expect(committed.filter(id => !ids.has(id))).toEqual([])
  }
})
