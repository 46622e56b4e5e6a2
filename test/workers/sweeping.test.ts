import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { ask } from '../helpers/ask.ts'
import { makeDirectory } from '../helpers/directory.ts'
import { eventually } from '../helpers/eventually.ts'
import { formOf, post } from '../helpers/form.ts'
import { spawnServer } from '../helpers/spawn-server.ts'

const FILES = 20

/** Writes who removes what, and does so; the first time it waits at `stuck` until its worker is killed. */
const REMOVE = `
  echo "$PPID $UPLOAD_KEY" >> removals
  [ "$UPLOAD_KEY" = stuck.txt ] && mkdir waited 2>/dev/null && sleep 60
  rm "files/$UPLOAD_KEY"`

it('two workers sweep together: nothing is removed twice, and what a killed one was at is removed by the other', async () => {
  const directory = await makeDirectory()
  const sh = (script: string) => ['sh', '-c', `cd '${directory}'; ${script}`]
  const box = {
    command: sh('cat > "files/$UPLOAD_KEY"'),
    remove: sh(REMOVE),
    url: 'http://img.example/{key}',
    expiry: { default: 'never' },
    keyTemplate: '{filename}{extname}',
  }
  await mkdir(join(directory, 'files'))
  const config = {
    metrics: { enabled: true },
    expiry: { everyMs: 300 },
    providers: { command: { box } },
  }
  await writeFile(join(directory, 'upload-server.json'), JSON.stringify(config))
  const server = await spawnServer(['--port', '0', '--workers', '2'], { directory })
  const url = await server.url
  const left = () => readdir(join(directory, 'files'))
  const removals = async () =>
    (await readFile(join(directory, 'removals'), 'utf8')).split('\n').filter(Boolean)
  const figures = async (name: string) => {
    const { body } = await ask(url, 'GET', '/metrics')
    return [...body.matchAll(new RegExp(`^upload_server_${name}(?:{.*})? (\\d+)`, 'gm'))].map(([, n]) =>
      Number(n),
    )
  }

  const names = [...Array.from({ length: FILES }, (_, n) => `${n}.txt`), 'stuck.txt']
  const soon = new Date(Date.now() + 2500).toISOString()
  const sent = names.map(name => post(`${url}/upload?expires=${soon}`, { body: formOf({ [name]: name }) }))
  expect((await Promise.all(sent)).map(({ status }) => status)).toEqual(names.map(() => 200))

  const pid = await eventually(async () => {
    const at = (await removals()).find(line => line.endsWith(' stuck.txt'))
    expect(at).toBeDefined()
    expect(await left()).toEqual(['stuck.txt'])
    return Number(at?.split(' ')[0])
  })
  const before = await removals()
  expect(before.map(line => line.split(' ')[1]).sort(), 'each of them once').toEqual(names.sort())
  await eventually(async () => expect(await figures('files_removed_total')).toEqual([FILES]))

  process.kill(pid, 'SIGKILL')
  await eventually(async () => expect(await left()).toEqual([]))
  const last = (await removals()).slice(before.length).map(line => line.split(' '))
  expect(last).toEqual([[expect.not.stringMatching(`^${pid}$`), 'stuck.txt']])
  await eventually(async () => {
    expect(await figures('files_due')).toEqual([0])
    expect(await figures('files_removed_total')).toEqual([FILES + 1])
  })
})
