import { mkdir, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { dirname, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { expect, it, onTestFinished } from 'vitest'
import { makeDirectory } from '../../helpers/directory.ts'
import { needs } from '../../helpers/needs.ts'
import { runOnTerminal } from '../../helpers/pty.ts'
import { BIN } from '../../helpers/spawn-server.ts'

const IN_PLACE = { keyTemplate: '{path}/{filename}{extname}' }

async function makePlace(files: Record<string, string>, config: object = IN_PLACE): Promise<string> {
  const cwd = await makeDirectory()
  const providers = { local: { Default: { directory: 'stored', urlPrefix: 'https://img.example' } } }
  await writeFile(join(cwd, 'upload-server.json'), JSON.stringify({ providers, ...config }))
  for (const [name, content] of Object.entries(files)) {
    await mkdir(dirname(join(cwd, name)), { recursive: true })
    await writeFile(join(cwd, name), content)
  }
  return cwd
}

/** Stores every file but those whose names begin with "slow", which it never answers. */
async function startHalf(): Promise<{ url: string; slow: Promise<void> }> {
  let reached = () => {}
  const slow = new Promise<void>(resolve => {
    reached = resolve
  })
  const server = createServer(async (req, res) => {
    const name = /filename="([^"]+)"/.exec(await text(req))?.[1] ?? ''
    if (name.startsWith('slow')) reached()
    else res.end(JSON.stringify({ success: true, result: [`https://img.example/${name}`] }))
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close().closeAllConnections())
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, slow }
}

const BIG = 'x'.repeat(70_000)

it('on a terminal there is a bar, and it leaves nothing behind', async context => {
  needs(context, 'python3', 'python3')
  const { url } = await startHalf()
  const cwd = await makePlace({ 'slow.txt': BIG, 'b.txt': BIG })
  const command = ['env', 'TERM=xterm', process.execPath, BIN, 'upload', '--server', url, 'b.txt', 'slow.txt']
  const { exitCode, stdout } = await runOnTerminal(command, [['1 of 2 files', '\u0003']], cwd)
  expect(exitCode).toBe(130)
  expect(stdout).toMatch(/█{12}░{12} 1 of 2 files/)
  expect(stdout).toContain('[1/2] b.txt  68 KB')
})
