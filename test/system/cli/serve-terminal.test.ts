import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { expect, it } from 'vitest'
import { ask } from '../../helpers/ask.ts'
import { makeDirectory } from '../../helpers/directory.ts'
import { readBlocks } from '../../helpers/documents.ts'
import { eventually } from '../../helpers/eventually.ts'
import { formOf, list, post } from '../../helpers/form.ts'
import { findFreePorts } from '../../helpers/free-port.ts'
import { needs } from '../../helpers/needs.ts'
import { runBuiltOnTerminal } from '../../helpers/pty.ts'

it('prints a banner with the URLs on a terminal, and one line for each upload', async context => {
  needs(context, 'python3', 'python3')
  const cwd = await makeDirectory()
  const port = await findFreePorts()
  const providers = { local: { Default: { directory: 'img', serve: true } } }
  const file = join(cwd, 'x.json')
  await writeFile(file, JSON.stringify({ server: { port, key: 'k3y-0f-the-server' }, providers }))
  const seen = runBuiltOnTerminal(['-c', file], [['nowhere.png', '\u0003']], cwd, { NO_COLOR: '1' })
  const url = `http://127.0.0.1:${port}`
  await eventually(async () => expect((await fetch(`${url}/heartbeat`)).status).toBe(200))
  await fetch(url)
  const answer = await post(`${url}/upload`, { body: formOf({ 'notes \u001b[31m.txt': 'x'.repeat(2000) }) })
  await post(`${url}/upload`, list('/nowhere.png'))
  const { exitCode, stdout } = await seen
  const lines = stdout.split('\r\n').map(line => line.replace(/^\d\d:\d\d:\d\d /, ''))
  expect(exitCode).toBe(0)
  expect(lines.slice(0, 8)).toEqual([
    '',
    `  ➜  Local:    ${url}`,
    '  ➜  Network:  not reachable  use --host 0.0.0.0 to allow other machines',
    `  ➜  Page:     ${url}/  upload files in a browser`,
    `  ➜  Files:    ${join(cwd, 'img')}  (local/Default)`,
    `  ➜  Config:   ${file}`,
    '  ➜  Key:      needed by other machines',
    '',
  ])
  expect(lines[8]?.replace(/\d+ ms$/, 'ms')).toBe(`✓ notes ?[31m.txt  2.0 KB → ${answer.result[0]}  ms`)
  expect(lines.filter(line => line.includes('nowhere.png'))).toEqual([
    expect.stringMatching(/^✗ \/nowhere\.png: .*\.$/),
  ])
})

it('the banner shows the file location once, as the documents show it', async context => {
  needs(context, 'python3', 'python3')
  const cwd = await makeDirectory()
  const port = await findFreePorts()
  const { stdout } = await runBuiltOnTerminal(['-p', String(port)], [['Key:', '\u0003']], cwd)
  expect(stdout.split(join(cwd, 'upload-server/files'))).toHaveLength(2)
  const { code = '' } =
    readBlocks(await readFile('docs/start/quick-start.md', 'utf8')).find(({ code }) => code.includes('➜')) ??
    {}
  const documented = code
    .replaceAll('36677', String(port))
    .replace('/home/me/.local/share/upload-server/files', join(cwd, 'upload-server/files'))
  expect(stripVTControlCharacters(stdout).replaceAll('\r\n', '\n')).toContain(documented)
})

it('says a sentence once', async context => {
  needs(context, 'python3', 'python3')
  const cwd = await makeDirectory()
  const port = await findFreePorts()
  const seen = runBuiltOnTerminal(['-p', String(port)], [['7.png', '\u0003']], cwd, { NO_COLOR: '1' })
  const url = `http://127.0.0.1:${port}`
  await eventually(async () => expect((await fetch(`${url}/heartbeat`)).status).toBe(200))
  const headers = { 'X-Forwarded-For': '203.0.113.9', Connection: 'close' }
  for (let i = 0; i < 7; i++) await ask(url, 'POST', '/upload', { headers, body: '{}' })
  await post(`${url}/upload`, list('/nowhere/7.png'))
  const lines = (await seen).stdout.split('\r\n').flatMap(line => line.split(/^[\d:]{8} (?=✗)/)[1] ?? [])
  expect(lines.slice(0, 7)).toEqual([
    expect.stringMatching(/^✗ POST \/upload: This server has no upload key/),
    ...Array.from({ length: 6 }, () => '✗ POST /upload: same error as above'),
  ])
  expect(lines[7]).toMatch(/^✗ \/nowhere\/7\.png: /)
})
