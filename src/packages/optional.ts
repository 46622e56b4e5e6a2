import { createRequire } from 'node:module'
import { Problem } from '../problem.ts'

/** Packages for this platform that another one needs, which `--omit=optional` omits. */
const PARTS: Readonly<Record<string, readonly string[]>> = {
  sharp: ['sharp', ...(process.platform === 'win32' ? [] : ['sharp-libvips'])].map(
    part => `@img/${part}-${process.platform}-${process.arch}`,
  ),
}

/** The command that installs an optional package that npm has omitted, without the others. */
export function installCommand(name: string): string {
  return ['npm install --omit=optional', name, ...(PARTS[name] ?? [])].join(' ')
}

/**
 * Loads a package that npm may have omitted (`npm install --omit=optional`).
 *
 * @param load imports the package by a literal name, so that its types are known
 * @throws Problem that says what to install
 */
export async function importOptional<T>(name: string, load: () => Promise<T>): Promise<T> {
  try {
    return await load()
  } catch (error) {
    const isMissing = error instanceof Error && 'code' in error && error.code === 'ERR_MODULE_NOT_FOUND'
    if (!isMissing) throw error
    throw new Problem(`it needs the package "${name}", which is not installed`, {
      advice: `Run "${installCommand(name)}" where upload-server is installed.`,
      cause: error,
    })
  }
}

/**
 * Whether a package is installed, without loading it.
 *
 * @param from the file that loads it; default: one of this package
 */
export function isInstalled(name: string, from = import.meta.filename): boolean {
  try {
    createRequire(from).resolve(name)
    return true
  } catch {
    return false
  }
}
