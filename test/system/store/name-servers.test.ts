import { spawn } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { request } from 'node:http'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { expect, it, onTestFinished } from 'vitest'
import { makeDirectory } from '../../helpers/directory.ts'
import { needs, needsLinux, needsRoot } from '../../helpers/needs.ts'
import { makePicture } from '../../helpers/picture.ts'
import { BIN, environmentIn } from '../../helpers/spawn-server.ts'

/** A name server's port can't be chosen, and another run of this test may be under way. */
const NETWORK = `127.${randomInt(1, 255)}.${randomInt(256)}`
const NAME_SERVER = `${NETWORK}.1`
/** Of no name in /etc/hosts. */
const CALLER = `${NETWORK}.2`

it('a name server that never answers holds up no first upload', async context => {
  needsLinux(context, 'a name server of its own')
  needsRoot(context, 'a name server of its own')
  needs(context, 'unshare', 'util-linux')
  const questions: Buffer[] = []
  const nameServer = createSocket('udp4', question => void questions.push(question)).bind(53, NAME_SERVER)
  onTestFinished(() => void nameServer.close())
  await once(nameServer, 'listening')

  const directory = await makeDirectory()
  await writeFile(join(directory, 'resolv.conf'), `nameserver ${NAME_SERVER}\n`)
  const program = 'mount --bind resolv.conf /etc/resolv.conf && exec "$0" "$@"'
  const args = ['--mount', 'sh', '-c', program, process.execPath, BIN, '--port', '0']
  const env = environmentIn(directory)
  const server = spawn('unshare', args, { cwd: directory, env, stdio: ['ignore', 'pipe', 'inherit'] })
  onTestFinished(async () => {
    server.kill('SIGKILL')
    await once(server, 'close')
  })
  const [line] = await once(createInterface(server.stdout), 'line')
  const { url } = JSON.parse(line)

  const upload = request(`${url}/upload?filename=a.png`, {
    method: 'POST',
    headers: { 'Content-Type': 'image/png' },
    localAddress: CALLER,
  })
  upload.end(makePicture())
  const [{ statusCode }] = await once(upload, 'response')
  expect(statusCode).toBe(200)
  expect(questions).toEqual([])
})
