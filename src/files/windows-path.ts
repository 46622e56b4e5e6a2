import { win32 } from 'node:path'

/** A share, `\\host\share`, in either kind of slash. */
const SHARE = /^[\\/]{2}[^\\/]/
/** Names of devices and of the object tree: `\\.\pipe\x`, `\\?\GLOBALROOT\…`, `\??\C:\…`. */
const DEVICE_TREE = /^[\\/](?:[\\/][.?]|\?\?)(?:[\\/]|$)/
/** What Windows takes for a device in every folder, whatever follows the first dot. */
const DEVICE = /^(?:con|prn|aux|nul|conin\$|conout\$|(?:com|lpt)[0-9¹²³])[ .]*(?:[.:]|$)/i

/**
 * Why a path of Windows may not even be looked at, in words; undefined when it may. Looking is harm enough: a share is
 * asked over the network, with the credentials of the server, and opening a device may wait for ever.
 *
 * @param roots folders the caller may name; undefined: any
 * @param platform of this machine; elsewhere such names mean nothing
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
