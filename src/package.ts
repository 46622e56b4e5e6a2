import { readFileSync } from 'node:fs'

/** The folder of this package. The build puts all modules into one folder, which is as deep as the one of this file. */
export const PACKAGE_FOLDER = new URL('../', import.meta.url)

let version: string | undefined

/** Version of this program, from its package. Read once. */
export function readVersion(): string {
  version ??= String(JSON.parse(readFileSync(new URL('package.json', PACKAGE_FOLDER), 'utf8')).version)
  return version
}
