import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { createLogLines } from '../../../src/log-lines.ts'
import { ask } from '../../helpers/ask.ts'
import { makeDirectory } from '../../helpers/directory.ts'
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

it('prints the banner in colours if the terminal has them, and the file location once', async context => {
  needs(context, 'python3', 'python3')
  const cwd = await makeDirectory()
  const port = await findFreePorts()
  const { stdout } = await runBuiltOnTerminal(['-p', String(port)], [['Key:', '\u0003']], cwd)
  const [green, bold, cyan, dim] = [32, 1, 36, 2].map(code => `\u001b[${code}m`)
  expect(stdout).toContain(`${green}➜\u001b[39m  ${bold}Local:`)
  expect(stdout).toContain(`${cyan}http://127.0.0.1:${port}\u001b[39m`)
  expect(stdout).toContain(`${dim}  run upload-server init to create one`)
  expect(stdout.split(join(cwd, 'upload-server/files'))).toHaveLength(2)
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

describe('a line of the log on a terminal', () => {
  const request = { time: '2026-01-01T00:00:00.000Z', req: { method: 'POST', path: '/upload' }, ms: 7 }
  const show = (...entries: object[]) => {
    const toLines = createLogLines(false)
    return entries.map(entry =>
      toLines(`${JSON.stringify({ ...request, ...entry })}\n`).replace(/^.{9}/gm, ''),
    )
  }
  const refused = { level: 'warn', res: { status: 401 }, address: '203.0.113.9', err: { message: 'No key.' } }

  it('says who was refused and why, and the same sentence only once', () => {
    expect(show(refused, refused)).toEqual([
      '✗ POST /upload from 203.0.113.9: No key.\n',
      '✗ POST /upload from 203.0.113.9: same error as above\n',
    ])
  })

  it('says once what failed for several files of a request', () => {
    const files = ['a', 'b', 'c', 'd'].map(name => ({ name, error: 'The disk is full.' }))
    const entry = {
      level: 'warn',
      files,
      errors: ['The disk is full.'],
      err: { message: 'The disk is full.' },
    }
    expect(show(entry)).toEqual(['✗ a, b, c and 1 more: The disk is full.\n'])
  })

  it('is left out for what only looks', () => {
    expect(show({ level: 'info', res: { status: 200 } })).toEqual([''])
  })

  it('has the stack of a mistake of ours', () => {
    const err = {
      code: 'internal_error',
      message: 'Something went wrong.',
      cause: { stack: 'Error: x\n    at y' },
    }
    expect(show({ level: 'error', res: { status: 500 }, err })[0]).toContain('Something went wrong.\n')
    expect(createLogLines(false)(JSON.stringify({ ...request, level: 'error', err }))).toContain('    at y\n')
  })

  it('moves no cursor, whatever a name holds', () => {
    const files = [{ name: 'a\u001b[2J\u202e\nb.png', size: 1, url: 'x' }]
    expect(show({ level: 'info', files })).toEqual(['✓ a?[2J??b.png  1 B → x  7 ms\n'])
  })

  it('is shown as it is when it is no JSON', () => {
    expect(createLogLines(false)('not\u001b JSON\n')).toBe('not? JSON\n')
  })
})
