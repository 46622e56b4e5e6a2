import { readFileSync } from 'node:fs'

let version: string | undefined

/** Of this program, as its package says. It is read once. */
export function readVersion(): string {
  version ??= String(JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')).version)
  return version
}
