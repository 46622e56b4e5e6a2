import { readdirSync, readlinkSync, realpathSync } from 'node:fs'

/**
 * Paths of the files and folders below a folder that this process has open (Linux). Other tests of the same process open and
 * close files meanwhile.
 */
export function openFilesBelow(folder: string): string[] {
  const below = realpathSync(folder)
  return readdirSync('/proc/self/fd')
    .map(fd => {
      try {
        return readlinkSync(`/proc/self/fd/${fd}`)
      } catch {
        return '' // that of the listing itself
      }
    })
    .filter(path => path === below || path.startsWith(`${below}/`))
}
