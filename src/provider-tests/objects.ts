import { createHash, randomBytes } from 'node:crypto'
import { createReadStream, readFileSync } from 'node:fs'
import { Readable } from 'node:stream'
import type { UploadObject } from '../providers/contract.ts'

export const MIB = 1024 * 1024
const LARGE_BYTES = 64 * MIB

/** An object with bytes in memory, or with those of a file when its path is given. */
export function objectOf(key: string, content: Buffer | string, contentType?: string): UploadObject {
  const path = typeof content === 'string' ? content : undefined
  const bytes = typeof content === 'string' ? readFileSync(content) : content
  return {
    key,
    size: bytes.length,
    contentType: contentType ?? 'application/octet-stream',
    sha256: sha256(bytes),
    path,
    stream: () =>
      path === undefined ? Readable.from([bytes], { objectMode: false }) : createReadStream(path),
    bytes: async () => bytes,
  }
}

/** 64 MiB that nobody holds: made chunk by chunk, each different from its neighbours. */
export function largeObject(key: string): UploadObject {
  const pattern = randomBytes(MIB)
  function* chunks() {
    for (let i = 0; i < LARGE_BYTES / 65_536; i++)
      yield pattern.subarray((i * 4099) % 900_000).subarray(0, 65_536)
  }
  const hash = createHash('sha256')
  for (const chunk of chunks()) hash.update(chunk)
  return {
    key,
    size: LARGE_BYTES,
    contentType: 'application/octet-stream',
    sha256: hash.digest('hex'),
    stream: () => Readable.from(chunks(), { objectMode: false, highWaterMark: 65_536 }),
    bytes: refuseBytes,
  }
}

async function refuseBytes(): Promise<Buffer> {
  throw new Error('a body of 64 MiB was read with bytes(): use stream()')
}

/** 8 MiB of which the second never comes. `onStall` is called when all before it is written and the put waits. */
export function stallingObject(key: string, onStall: () => void): UploadObject {
  const object = interruptedObject(key, () => setTimeout(onStall, 100))
  const bytes = () => {
    setImmediate(onStall) // who takes the body as a whole is stopped while sending it
    return object.bytes()
  }
  return { ...object, bytes }
}

/** 8 MiB of which the second fails. */
export function tearingObject(key: string): UploadObject {
  const torn = new Error('the body broke off')
  const object = interruptedObject(key, stream => stream.destroy(torn))
  return { ...object, bytes: () => Promise.reject(torn) }
}

function interruptedObject(key: string, interrupt: (stream: Readable) => unknown): UploadObject {
  const bytes = randomBytes(8 * MIB)
  function stream(): Readable {
    let reads = 0
    return new Readable({
      highWaterMark: MIB,
      read() {
        reads++
        if (reads === 1) this.push(bytes.subarray(0, MIB))
        else if (reads === 2) interrupt(this)
      },
    })
  }
  return { ...objectOf(key, bytes), stream }
}

export function sha256(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex')
}
