import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { type IncomingMessage, request } from 'node:http'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { expect, it } from 'vitest'
import { makeDirectory } from '../helpers/directory.ts'
import { type Answer, download } from '../helpers/form.ts'
import { needsLinux } from '../helpers/needs.ts'
import { spawnServer } from '../helpers/spawn-server.ts'

const MB = 1024 * 1024

/** More than the bound of memory all together. */
const CLIENTS = 25
const CLIENT_BYTES = 12 * MB

it(`keeps its memory bounded while ${CLIENTS} clients send ${CLIENT_BYTES / MB} MB each, and every byte arrives`, {
  timeout: 120_000,
}, async context => {
  needsLinux(context, 'peak memory is read from /proc')
  const directory = await makeDirectory()
  const local = { Default: { directory: join(directory, 'files'), serve: true, durable: false } }
  await writeFile(join(directory, 'upload-server.json'), JSON.stringify({ providers: { local } }))
  const server = await spawnServer(['--port', '0'], { directory })
  const url = await server.url
  const block = randomBytes(CLIENT_BYTES + CLIENTS)
  const files = Array.from({ length: CLIENTS }, (_, i) => block.subarray(i, i + CLIENT_BYTES))
  const links = await Promise.all(files.map(file => uploadInPlace(url, file)))
  expect(new Set(links).size).toBe(CLIENTS)
  for (const [i, file] of files.entries()) expect((await download(links[i]!)).equals(file)).toBe(true)
  const status = readFileSync(`/proc/${server.process.pid}/status`, 'utf8')
  const peakMB = Number(/VmHWM:\s+(\d+) kB/.exec(status)?.[1]) / 1024
  expect(peakMB).toBeLessThan(256)
})

/** An upload that copies nothing of its file in this process. @returns the link */
async function uploadInPlace(url: string, file: Buffer): Promise<string> {
  const call = request(`${url}/upload`, {
    method: 'POST',
    agent: false,
    headers: { 'Content-Type': 'multipart/form-data; boundary=b' },
  })
  call.write('--b\r\nContent-Disposition: form-data; name="file"; filename="same.bin"\r\n\r\n')
  call.write(file)
  call.end('\r\n--b--\r\n')
  const [response] = (await once(call, 'response')) as [IncomingMessage]
  const answer = JSON.parse(await text(response)) as Answer
  expect(answer.message).toBeUndefined()
  return answer.result[0]!
}
