import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { inFile, inMemory, type Range, readAll } from '../body.ts'
import { Problem } from '../problem.ts'
import type { UploadObject } from '../providers/contract.ts'

export const MIB = 1024 * 1024
/** Size of the chunks of a generated object, in bytes. */
const CHUNK_BYTES = 64 * 1024

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
  const body = path === undefined ? inMemory(bytes) : inFile(path, bytes.length)
  return { ...body, key, contentType: contentType ?? 'application/octet-stream', sha256: sha256(bytes), path }
}

/** Returns the bytes of an object. */
export function bytesOf(object: UploadObject): Promise<Buffer> {
  return readAll(object, new AbortController().signal)
}

/** Makes an object whose bytes are generated chunk by chunk, so that no code holds them. */
export function largeObject(key: string, size: number): UploadObject {
  const pattern = randomBytes(MIB)
  function* chunks({ start, end }: Range) {
    for (let position = start; position < end; ) {
      const chunk = pattern.subarray((Math.floor(position / CHUNK_BYTES) * 4099) % 900_000)
      const piece = chunk.subarray(position % CHUNK_BYTES, CHUNK_BYTES).subarray(0, end - position)
      position += piece.length
      yield piece
    }
  }
  const whole = { start: 0, end: size }
  const hash = createHash('sha256')
  for (const chunk of chunks(whole)) hash.update(chunk)
  return {
    size,
    async *read(signal, range = whole) {
      for (const chunk of chunks(range)) {
        signal.throwIfAborted()
        yield chunk
      }
    },
    key,
    contentType: 'application/octet-stream',
    sha256: hash.digest('hex'),
  }
}

/** Makes an object of 8 MiB that stalls after the first MiB. `onStall` is called when that MiB was written and the put waits. */
export function stallingObject(key: string, onStall: () => void): UploadObject {
  return interruptedObject(key, 8 * MIB, async signal => {
    setTimeout(onStall, 100)
    if (!signal.aborted) await once(signal, 'abort')
    throw signal.reason
  })
}

/** Makes an object of 8 MiB that can't be read after the first MiB. */
export function tearingObject(key: string): UploadObject {
  return interruptedObject(key, 8 * MIB, async () => {
    throw new Problem('its temporary file could not be read on this server (EIO)', {
      advice: 'Send it again.',
    })
  })
}

/** Makes an object of which only the first MiB is read before `interrupt` is called, which may end the body early. */
export function interruptedObject(
  key: string,
  size: number,
  interrupt: (signal: AbortSignal) => Promise<void>,
): UploadObject {
  const object = objectOf(key, randomBytes(size))
  return {
    ...object,
    async *read(signal, { start, end } = { start: 0, end: size }) {
      yield* object.read(signal, { start, end: Math.min(end, MIB) })
      if (end > MIB) await interrupt(signal)
    },
  }
}

export function sha256(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex')
}
