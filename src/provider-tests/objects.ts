import { createHash, randomBytes } from 'node:crypto'
import { createReadStream, readFileSync } from 'node:fs'
import { Readable } from 'node:stream'
import type { UploadObject } from '../providers/contract.ts'

export const MIB = 1024 * 1024

/** Names that are not easy to write into an address. */
export const ODD_NAMES = [
  'plain.png',
  'über ordner/日本語/смайл 😀.png',
  'a b#c?d%25e&f.png',
  "it's (1) [2] {3} *!+@,;=$~^`.png",
  '%2e%2e.png',
  'no extension',
  `${'long'.repeat(45)}.png`,
]

/** What no object can be called, in words and as it is. */
export const REFUSED_KEYS = [
  ['an empty one', ''],
  ['an absolute one', '/a.bin'],
  ['that of a folder', 'folder/'],
  ['one with an empty name', 'a//b.bin'],
  ['one with "."', 'a/./b.bin'],
  ['one that leads out', '../a.bin'],
  ['one that leads up', 'a/../../b.bin'],
  ['one with a line break', 'a\r\nb.bin'],
  ['one with NUL', 'a\0.bin'],
  ['one with half a character', 'a\ud800.bin'],
  ['one too long', `${'a/'.repeat(512)}b`],
] as const

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

/** Bytes that nobody holds: made chunk by chunk, each different from its neighbours. @param size multiple of 64 KiB */
export function largeObject(key: string, size: number): UploadObject {
  const pattern = randomBytes(MIB)
  function* chunks() {
    for (let i = 0; i < size / 65_536; i++) yield pattern.subarray((i * 4099) % 900_000).subarray(0, 65_536)
  }
  const hash = createHash('sha256')
  for (const chunk of chunks()) hash.update(chunk)
  return {
    key,
    size,
    contentType: 'application/octet-stream',
    sha256: hash.digest('hex'),
    stream: () => Readable.from(chunks(), { objectMode: false, highWaterMark: 65_536 }),
    bytes: refuseBytes,
  }
}

async function refuseBytes(): Promise<Buffer> {
  throw new Error('a large body was read with bytes(): use stream()')
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
