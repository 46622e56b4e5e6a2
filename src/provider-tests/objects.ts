import { createHash, randomBytes } from 'node:crypto'
import { createReadStream, readFileSync } from 'node:fs'
import { Readable } from 'node:stream'
import type { UploadObject } from '../providers/contract.ts'

export const MIB = 1024 * 1024

/** File names that are hard to encode in a URL. */
export const ODD_NAMES = [
  'plain.png',
  'über ordner/日本語/смайл 😀.png',
  'a b#c?d%25e&f.png',
  "it's (1) [2] {3} *!+@,;=$~^`.png",
  '%2e%2e.png',
  'no extension',
  `${'long'.repeat(45)}.png`,
]

/** Invalid object keys, each with a description. */
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

/** Makes an object from bytes in memory, or from the bytes of a file if its path is given. */
export function objectOf(key: string, content: Buffer | string, contentType?: string): UploadObject {
  const path = typeof content === 'string' ? content : undefined
  const bytes = typeof content === 'string' ? readFileSync(content) : content
  return {
    key,
    size: bytes.length,
    contentType: contentType ?? 'application/octet-stream',
    sha256: sha256(bytes),
    path,
    chunks: () => (path === undefined ? [bytes] : undefined),
    stream: () =>
      path === undefined ? Readable.from([bytes], { objectMode: false }) : createReadStream(path),
    bytes: async () => bytes,
  }
}

/** Makes an object whose bytes are generated chunk by chunk, so that no code holds them. @param size multiple of 64 KiB */
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

/** Makes an object of 8 MiB that stalls after the first MiB. `onStall` is called when that MiB was written and the put waits. */
export function stallingObject(key: string, onStall: () => void): UploadObject {
  const object = interruptedObject(key, () => setTimeout(onStall, 100))
  const bytes = () => {
    setImmediate(onStall) // a put that reads the whole body is aborted while it sends the body
    return object.bytes()
  }
  return { ...object, bytes }
}

/** Makes an object of 8 MiB whose stream fails after the first MiB. */
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
  return { ...objectOf(key, bytes), chunks: () => undefined, stream }
}

export function sha256(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex')
}
