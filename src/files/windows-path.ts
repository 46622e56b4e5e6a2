import { win32 } from 'node:path'

/** A network share, `\\host\share`, with either kind of slash. */
const SHARE = /^[\\/]{2}[^\\/]/
/** Names of devices and of the object tree: `\\.\pipe\x`, `\\?\GLOBALROOT\…`, `\??\C:\…`. */
const DEVICE_TREE = /^[\\/](?:[\\/][.?]|\?\?)(?:[\\/]|$)/
/** Names that Windows reads as devices in every folder, with any extension. */
const DEVICE = /^(?:con|prn|aux|nul|conin\$|conout\$|(?:com|lpt)[0-9¹²³])[ .]*(?:[.:]|$)/i

/**
 * Why a Windows path must not even be opened, or undefined if it may be. Opening alone does harm: a share is accessed over
 * the network with the credentials of the server, and opening a device can wait forever.
 *
 * @param roots folders that the client may use. Undefined: any
 * @param platform of this machine. On other systems, such names have no meaning
 */
export function findWindowsFault(
  path: string,
  roots: readonly string[] | undefined,
  platform: NodeJS.Platform = process.platform,
): string | undefined {
  if (platform !== 'win32') return undefined
  if (DEVICE_TREE.test(path)) return 'it is the name of a device'
  const names = path.replace(/^[a-z]:/i, '').split(/[\\/]/)
  if (names.some(name => name.includes(':'))) return 'it is an alternate data stream of a file'
  if (names.some(name => DEVICE.test(name.trim()))) return 'it is the name of a device'
  if (!roots || !SHARE.test(path)) return undefined
  const isInside = roots.some(root => {
    const inner = win32.relative(root, path)
    return !inner.startsWith('..') && !win32.isAbsolute(inner)
  })
  return isInside ? undefined : 'it is on another machine'
}
