import { realpathSync, statSync } from 'node:fs'
import { join, sep } from 'node:path'
import { canonicalType } from '../providers/registry.ts'
import { isRecord } from './json.ts'

/*
 * The working directory is not trusted, because it may be a repository or a vault that somebody else made. A configuration
 * that is only found there must not run code, and gets no secrets from outside of it.
 */

/** How a configuration file was found: named by the user, in the working directory, or in the user's configuration directory. */
export type Origin = 'named' | 'here' | 'user'

/** Name of the configuration file in the working directory. */
export const LOCAL_CONFIG_FILE = 'upload-server.json'

/** The flag that makes a command trust the file in the working directory. */
export const TRUST_OPTION = `--config ${LOCAL_CONFIG_FILE}`

/** Finds all settings of a configuration that run code. */
export function findCode(config: unknown): { path: string; message: string }[] {
  const { plugins, providers, finalization } = isRecord(config) ? config : {}
  const paths: string[] = []
  if (plugins !== undefined && !(Array.isArray(plugins) && plugins.length === 0)) paths.push('plugins')
  for (const type of Object.keys(isRecord(providers) ? providers : {}))
    if (canonicalType(type) === 'command') paths.push(`providers.${type}`)
  const hooks = isRecord(finalization) && Array.isArray(finalization['hooks']) ? finalization['hooks'] : []
  for (const [index, hook] of hooks.entries())
    if (isRecord(hook) && hook['command'] !== undefined) paths.push(`finalization.hooks[${index}].command`)
  const message = `runs code, which is not allowed in a configuration that was only found in the working directory. If you trust it, start with ${TRUST_OPTION}`
  return paths.map(path => ({ path, message }))
}

/** Whether a variable, by its path in the configuration, sets something that may run code. */
export function setsCode([section = '', member = '*']: readonly string[]): boolean {
  switch (section.toLowerCase()) {
    case 'plugins':
      return true
    case 'providers':
      return ['*', 'command'].includes(canonicalType(member.toLowerCase()))
    case 'finalization':
      return ['*', 'hooks'].includes(member.toLowerCase())
    default:
      return false
  }
}

/** Whether two paths lead to the same folder, symbolic links resolved. */
export function isSameFolder(one: string, other: string): boolean {
  try {
    return realpathSync(one) === realpathSync(other)
  } catch {
    return one === other // A folder that does not exist contains nothing.
  }
}

/** Whether a file is below a folder, symbolic links resolved, and is a regular file. Devices and pipes never end. */
export function isPlainFile(file: string, folder: string): boolean {
  try {
    const [real, around] = [realpathSync(file), realpathSync(folder)]
    return real.startsWith(join(around, sep)) && statSync(real).isFile()
  } catch {
    return false // It does not exist.
  }
}
