import { homedir } from 'node:os'
import { isAbsolute, join, resolve } from 'node:path'
import type { KnownHosts } from '../providers/contract.ts'

/** Inputs that decide where configuration and data are located. */
export interface PathContext {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly platform: NodeJS.Platform
  /** Working directory. */
  readonly cwd: string
}

const NAME = 'upload-server'

/** The user's configuration file: `$XDG_CONFIG_HOME/upload-server/config.json` and its equivalents on other systems. */
export function userConfigFile({ env, platform }: PathContext): string {
  if (platform === 'win32')
    return join(env['APPDATA'] ?? join(homedir(), 'AppData', 'Roaming'), NAME, 'config.json')
  if (platform === 'darwin') return join(home(env), 'Library', 'Application Support', NAME, 'config.json')
  return join(xdg(env, 'XDG_CONFIG_HOME', '.config'), NAME, 'config.json')
}

/** The default directory of stored files and of the history. */
export function userDataDirectory({ env, platform }: PathContext): string {
  if (platform === 'win32') return join(env['LOCALAPPDATA'] ?? join(homedir(), 'AppData', 'Local'), NAME)
  if (platform === 'darwin') return join(home(env), 'Library', 'Application Support', NAME)
  return join(xdg(env, 'XDG_DATA_HOME', '.local/share'), NAME)
}

/** The SQLite database of a configuration. PostgreSQL is used instead if `database.driver` says so. */
export const databasePathOf = ({
  settings,
  dataDirectory,
}: {
  readonly settings: { readonly database: { readonly path?: string | undefined } }
  readonly dataDirectory: string
}): string => settings.database.path ?? join(dataDirectory, 'store.db')

/** The known_hosts files of SSH: that of this program, and those of OpenSSH, of the user and of the system. */
export function knownHosts(dataDirectory: string): KnownHosts {
  return {
    kept: join(dataDirectory, 'known_hosts'),
    others: [
      { path: join(systemHome(), '.ssh', 'known_hosts'), words: '"~/.ssh/known_hosts"' },
      { path: '/etc/ssh/ssh_known_hosts', words: '"/etc/ssh/ssh_known_hosts"' },
    ],
  }
}

/** The XDG base directory specification requires relative values to be ignored. */
function xdg(env: PathContext['env'], name: string, fallback: string): string {
  const value = env[name]
  return value && isAbsolute(value) ? value : join(home(env), fallback)
}

/** The home directory, as POSIX defines it. */
function home(env: PathContext['env']): string {
  return env['HOME'] || systemHome()
}

/** The home directory of the account. That of a user ID without an account is the root, as in containers. */
function systemHome(): string {
  try {
    return homedir()
  } catch {
    return '/'
  }
}

/** Resolves a path of a configuration: `~/` is the home directory, and relative paths start at `base`. */
export function resolveLocalPath(path: string, base: string): string {
  if (path === '~' || path.startsWith('~/') || path.startsWith('~\\'))
    return join(systemHome(), path.slice(1))
  return resolve(base, path)
}
