import { UploadError } from '../errors.ts'
import { type ClipboardContent, firstOfList, imageLimit, textLimit, toImage, toReference } from './content.ts'
import { type ClipboardReading, type OutputLimit, runTool, type Tool } from './tool.ts'

/** The preferred image types, best first. All other `image/…` types come after them. */
const IMAGE_TYPES = [
  'image/png',
  'image/jpeg',
  'image/gif',
  'image/webp',
  'image/bmp',
  'image/tiff',
  'image/svg+xml',
]
/** Types of a copied file: the common one, then those of GNOME and MATE. */
const FILE_TYPES = ['text/uri-list', 'x-special/gnome-copied-files', 'x-special/mate-copied-files']
/** Names of X11 (ICCCM, section 2.6.2) and MIME types; both displays use both. UTF-8 first. */
const TEXT_TYPES = ['UTF8_STRING', 'text/plain;charset=utf-8', 'text/plain', 'STRING', 'TEXT']

/** The clipboard of a display server: the tool that reads it, and its arguments. */
interface Board extends Tool {
  /** Arguments that print the available types, one per line. */
  readonly list: readonly string[]
  /** Arguments that print the bytes of one type. */
  read(type: string): readonly string[]
}

const X11: Board = {
  program: 'xclip',
  remedy: 'install the package "xclip"',
  check: 'check that "DISPLAY" and "XAUTHORITY" belong to a running display that this account may use',
  list: ['-selection', 'clipboard', '-t', 'TARGETS', '-o'],
  read: type => ['-selection', 'clipboard', '-t', type, '-o'],
  empty: /target .{0,200} not available/i,
}

const WAYLAND: Board = {
  program: 'wl-paste',
  remedy: 'install the package "wl-clipboard"',
  check:
    'check that "WAYLAND_DISPLAY" and "XDG_RUNTIME_DIR" belong to a running compositor that this account may use',
  list: ['--list-types'],
  read: type => ['--no-newline', '--type', type],
  empty: /no selection|nothing is copied|no suitable type/i,
}

/** Also the clipboard of Xwayland and XQuartz. xsel is not a substitute, because it reads text only. */
export function readX11(reading: ClipboardReading): Promise<ClipboardContent> {
  return readBoard(X11, reading)
}

/** On compositors without a data-control protocol (GNOME) wl-paste takes the focus for a moment. */
export function readWayland(reading: ClipboardReading): Promise<ClipboardContent> {
  return readBoard(WAYLAND, reading)
}

/** Lists the types first, because an owner can return text if it is asked for an image (xclip does). */
async function readBoard(board: Board, reading: ClipboardReading): Promise<ClipboardContent> {
  const { maxBytes } = reading
  const ask = (type: string, limit: OutputLimit = textLimit) =>
    runTool(board, board.read(type), limit, reading)
  const types = (await runTool(board, board.list, textLimit, reading)).toString().split('\n')
  const image =
    IMAGE_TYPES.find(type => types.includes(type)) ?? types.find(type => type.startsWith('image/'))
  if (image) return toImage(await ask(image, imageLimit(maxBytes)), maxBytes)
  const files = FILE_TYPES.find(type => types.includes(type))
  const first = files && firstOfList((await ask(files)).toString(), 'posix')
  if (first) return first
  const text = TEXT_TYPES.find(type => types.includes(type))
  if (text) return toReference((await ask(text)).toString(), 'posix')
  throw new UploadError(
    'source_failed',
    'The clipboard contains neither an image nor a file nor text. Copy an image and repeat the upload.',
  )
}
