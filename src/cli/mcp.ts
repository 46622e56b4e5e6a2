import { realpath, stat } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import type { Command } from 'commander'
import { userConfigFile } from '../config/paths.ts'
import { idOf } from '../uploader/delivery/destinations.ts'
import type { Caller } from '../uploader/input.ts'
import { readVersion } from '../version.ts'
import { collect, configOption, endWith } from './command.ts'
import { type Opened, openForCommand } from './open.ts'
import { finishFor } from './repeat.ts'
import { storeInputs } from './store-inputs.ts'
import { type CommonOptions, oneLine, type Terminal } from './terminal.ts'
import { isDead } from './upload-here.ts'

interface McpOptions extends CommonOptions {
  root?: string[]
}

export function register(program: Command, terminal: Terminal): void {
  program
    .command('mcp')
    .description(
      'let an agent upload files: a server of the Model Context Protocol on standard input and output',
    )
    .addOption(configOption())
    .option(
      '--root <folder>',
      'folder below which files may be uploaded; repeatable (default: the one it is started in)',
      collect,
    )
    .addHelpText(
      'after',
      `
Examples:
  upload-server mcp
  upload-server mcp --root ~/Pictures --root screenshots
  claude mcp add upload-server -- upload-server mcp

It is started by the program that the agent runs in. Files whose names begin with a dot are refused. Without --config it
reads your configuration, not one that lies in the folder it is started in.`,
    )
    .action((options: McpOptions) => endWith(terminal, mcp(options, terminal, terminal.untilInterrupted())))
}

/** `upload-server mcp`: serves one client until that closes standard input. */
async function mcp(options: McpOptions, terminal: Terminal, signal: AbortSignal): Promise<number> {
  const roots = await findRoots(options.root ?? [], terminal.cwd)
  // A folder that was cloned may bring a configuration of its own, which would get the files and may run commands.
  const config = options.config === undefined ? undefined : resolve(terminal.cwd, options.config)
  const here = { ...terminal, cwd: dirname(userConfigFile(terminal)) }
  const opened = await openForCommand({ config }, here)
  const { uploader } = opened
  try {
    const [{ createMcpServer }, { serveStdio }] = await Promise.all([
      import('../mcp/server.ts'),
      import('@modelcontextprotocol/server/stdio'),
    ])
    const deps = {
      version: readVersion(),
      roots,
      destinations: listDestinations(opened),
      upload: (paths: readonly string[], id: string | undefined, ended: AbortSignal) =>
        uploadFor(
          agentBelow(roots),
          paths,
          id,
          AbortSignal.any([signal, ended]),
          opened,
          { config },
          terminal,
        ),
    }
    await new Promise<void>(end => {
      const handle = serveStdio(
        () => {
          const server = createMcpServer(deps)
          server.server.onclose = end
          return server
        },
        { onerror: error => terminal.note(oneLine(terminal.mask(error.message))) },
      )
      process.stdin.once('end', end)
      signal.addEventListener('abort', () => void handle.close().finally(end))
    })
    return 0
  } finally {
    await uploader.close()
  }
}

/** @throws Error for a root that is no folder */
async function findRoots(given: readonly string[], cwd: string): Promise<[string, ...string[]]> {
  const [first = cwd, ...others] = given
  const find = async (folder: string): Promise<string> => {
    const path = resolve(cwd, folder)
    const isFolder = await stat(path).then(
      found => found.isDirectory(),
      () => false,
    )
    if (!isFolder) throw new Error(`--root ${folder}: there is no such folder.`)
    return realpath(path)
  }
  return [await find(first), ...(await Promise.all(others.map(find)))]
}

/** What an agent may do: paths below the roots are all it can name. */
function agentBelow(roots: readonly string[]): Caller {
  return {
    name: 'mcp',
    admittedBy: 'loopback',
    sources: new Set(['path']),
    roots,
    addresses: 'public',
    destinations: undefined,
  }
}

function listDestinations({ uploader }: Opened): { id: string; isDefault: boolean }[] {
  const isDefault = (id: string) => {
    try {
      return idOf(uploader.choose({}, agentBelow([]))) === id
    } catch {
      return false // several, and the setting `default` names none
    }
  }
  return uploader.destinations.map(idOf).map(id => ({ id, isDefault: isDefault(id) }))
}

async function uploadFor(
  caller: Caller,
  paths: readonly string[],
  id: string | undefined,
  signal: AbortSignal,
  opened: Opened,
  options: CommonOptions,
  terminal: Terminal,
): Promise<{ results: ({ url: string } | { error: string })[]; remark?: string }> {
  const [picbed, ...name] = id?.split('/') ?? []
  const destination = opened.uploader.choose({ picbed, configName: name.join('/') }, caller)
  const inputs = paths.map(path => ({ kind: 'path', origin: path, path }) as const)
  const { results, pending } = await storeInputs(opened, { destination, inputs, caller, signal })
  if (pending)
    return {
      results,
      remark: `Everything is stored, but not finished: ${pending.problem}. Finish without uploading again: ${finishFor([pending.id], options, terminal)}`,
    }
  const urls = results.flatMap(one => ('url' in one ? [one.url] : []))
  if (await isDead(urls, opened.config.settings.server))
    return { results, remark: 'These links work while upload-server runs; it does not run now.' }
  return { results }
}
