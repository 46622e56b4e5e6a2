import { readFile, writeFile } from 'node:fs/promises'
import { request } from 'node:http'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { expect } from 'vitest'
import { makeDirectory } from './directory.ts'
import { spawnServer } from './spawn-server.ts'

const MIB = 1024 * 1024
/** Enough for all buffers on the way to be in use. */
const SMALLER_MIB = 32

/**
 * Sends a file through a server of its own to a destination, then one that is so many MiB larger. Only the difference is
 * told: how much memory one file takes depends on how busy the machine is.
 *
 * @returns how much the most memory it ever had has grown by the larger one, MiB
 */
export async function measureGrowth(type: string, options: object, mebibytes: number): Promise<number> {
  const directory = await makeDirectory()
  const config = {
    limits: { fileSize: '2GB' },
    default: `${type}/Default`,
    providers: { [type]: { Default: options } },
  }
  const file = join(directory, 'upload-server.json')
  await writeFile(file, JSON.stringify(config))
  const server = await spawnServer(['--config', file, '--port', '0'], { directory })
  const peaks: number[] = []
  for (const size of [SMALLER_MIB, SMALLER_MIB + mebibytes]) {
    await sendForm(`${await server.url}/upload`, size)
    const status = await readFile(`/proc/${server.process.pid}/status`, 'utf8')
    peaks.push(Number(/VmHWM:\s+(\d+) kB/.exec(status)?.[1]) / 1024)
  }
  const [before = 0, after = Infinity] = peaks
  return after - before
}

async function sendForm(url: string, mebibytes: number): Promise<void> {
  const chunk = Buffer.alloc(MIB, 'upload')
  function* body() {
    yield '--b\r\nContent-Disposition: form-data; name="file"; filename="large.bin"\r\n\r\n'
    for (let i = 0; i < mebibytes; i++) yield chunk
    yield '\r\n--b--\r\n'
  }
  const headers = { 'Content-Type': 'multipart/form-data; boundary=b' }
  const sent = request(url, { method: 'POST', headers })
  const answered = new Promise<string>((resolve, reject) => {
    sent
      .once('response', async response => resolve((await response.toArray()).join('')))
      .once('error', reject)
  })
  await pipeline(Readable.from(body(), { objectMode: false }), sent)
  expect(JSON.parse(await answered)).toMatchObject({ success: true })
}
