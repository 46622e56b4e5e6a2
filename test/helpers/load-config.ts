import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { ConfigError, type Flags, type LoadedConfig, loadConfig } from '../../src/config/load.ts'
import { makeDirectory } from './directory.ts'

/** Contents of files by their paths. What is no text is written as JSON. */
export type Files = Readonly<Record<string, unknown>>

export interface LoadWith {
  readonly file?: string | undefined
  readonly env?: Readonly<Record<string, string>>
  readonly flags?: Flags
  /** Other files in the folder of the configuration. */
  readonly files?: Files
}

/** A working directory with these files alone, and the user's directories beside it. */
export async function makeMachine(files: Files = {}) {
  const root = await makeDirectory()
  const cwd = join(root, 'cwd')
  await mkdir(cwd)

  /** Writes a file below the working directory and gives its path. */
  async function write(name: string, content: unknown): Promise<string> {
    const path = join(cwd, name)
    await mkdir(dirname(path), { recursive: true })
    const isText = typeof content === 'string' || content instanceof Buffer
    await writeFile(path, isText ? content : JSON.stringify(content))
    return path
  }

  for (const [name, content] of Object.entries(files)) await write(name, content)
  const xdg = { XDG_CONFIG_HOME: join(root, 'config'), XDG_DATA_HOME: join(root, 'data') }
  return {
    cwd,
    write,
    load: ({ env, files: _, ...options }: LoadWith = {}): Promise<LoadedConfig> =>
      loadConfig({ env: { ...xdg, ...env }, platform: 'linux', cwd, ...options }),
  }
}

/** Loads a configuration with this content. */
export async function load(content: unknown, options: LoadWith = {}): Promise<LoadedConfig> {
  const machine = await makeMachine({ ...options.files, 'c.json': content })
  return machine.load({ file: 'c.json', ...options })
}

/** What is reported of a configuration, without the name of the file and without lines. Empty if it is valid. */
export async function problemsOf(content: unknown, options: LoadWith = {}): Promise<readonly string[]> {
  try {
    await load(content, options)
    return []
  } catch (error) {
    if (error instanceof ConfigError) return error.problems
    throw error
  }
}
