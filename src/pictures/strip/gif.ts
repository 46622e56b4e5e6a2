import { Output } from './output.ts'

const [IMAGE, EXTENSION, TRAILER] = [0x2c, 0x21, 0x3b]
const [PLAIN_TEXT, CONTROL, APPLICATION] = [0x01, 0xf9, 0xff]
/** Lengths of the header with the screen, of an image descriptor, of a control, and of the name of an application. */
const [HEADER_BYTES, IMAGE_BYTES, CONTROL_BYTES, NAME_BYTES] = [13, 10, 8, 11]
const LOOPS = /^(?:NETSCAPE2\.0|ANIMEXTS1\.0)\x03\x01$/

/**
 * Removes everything from a GIF that is not needed to show it. Kept are the frames, their time and transparency, and the number
 * of loops.
 *
 * @throws Error if it is damaged
 * @see https://www.w3.org/Graphics/GIF/spec-gif89a.txt
 */
export function stripGif(file: Buffer): Buffer {
  const out = new Output(file.length)
  let at = HEADER_BYTES + coloursOf(file.readUInt8(10))
  out.copy(file, 0, at)
  /** Where the control of the next image is. */
  let control: number | undefined
  let hasLoops = false
  for (;;) {
    const kind = at === file.length ? TRAILER : file.readUInt8(at) // some programs leave it out
    if (kind === TRAILER) {
      out.add(Buffer.from([TRAILER]))
      return out.finish()
    }
    if (kind === IMAGE) {
      if (control !== undefined) out.copy(file, control, control + CONTROL_BYTES)
      control = undefined
      const start = at + IMAGE_BYTES + coloursOf(file.readUInt8(at + 9))
      const end = endOfBlocks(file, start + 1)
      out.copy(file, at, end)
      at = end
    } else if (kind === EXTENSION) {
      const label = file.readUInt8(at + 1)
      const end = endOfBlocks(file, at + 2)
      if (label === CONTROL && end === at + CONTROL_BYTES) control = at
      else if (label === PLAIN_TEXT)
        control = undefined // no decoder draws the text
      else if (label === APPLICATION && !hasLoops && isLoop(file, at)) {
        hasLoops = true
        // The number of loops is the first block of three bytes.
        out.copy(file, at, at + 3 + NAME_BYTES + 4)
        out.add(Buffer.alloc(1))
      }
      at = end
    } else throw new Error('it contains an unknown block')
  }
}

function isLoop(file: Buffer, at: number): boolean {
  return file[at + 2] === NAME_BYTES && LOOPS.test(file.toString('latin1', at + 3, at + 5 + NAME_BYTES))
}

/** Length of the color table that these flags announce. */
function coloursOf(flags: number): number {
  return flags & 0x80 ? 3 * 2 ** ((flags & 7) + 1) : 0
}

/** Data is a list of blocks of up to 255 bytes each. An empty block ends it. */
function endOfBlocks(file: Buffer, start: number): number {
  let at = start
  for (let length = file.readUInt8(at); length > 0; length = file.readUInt8(at)) at += 1 + length
  return at + 1
}
