import { realpath, stat } from 'node:fs/promises'
import { resolve } from 'node:path'
import type { Entry } from '../../client/entries.ts'
import type { Result } from '../../client/result.ts'
import { uploadAll } from '../../client/uploads.ts'
import { readVersion } from '../../package.ts'
import { idOf } from '../../uploader/destinations.ts'
import type { Caller } from '../../uploader/input.ts'
import type { Call, Typed } from '../define.ts'
import { type Opened, openForCommand } from '../open.ts'
import { remarksOn } from '../repeat.ts'
import { oneLine, type Terminal } from '../terminal.ts'
import { createUploadsHere, type UploadRights } from '../upload-here.ts'
import type { flags } from './index.ts'

/** `upload-server mcp`: serves one client until it closes standard input. */
export async function run({ options }: Call<typeof flags>, terminal: Terminal): Promise<number> {
  const signal = terminal.untilInterrupted()
  const roots = await findRoots(options.root ?? [], terminal.cwd)
  const config = options.config === undefined ? undefined : resolve(terminal.cwd, options.config)
  const opened = await openForCommand({ config }, terminal)
  const { uploader } = opened
  try {
    const [{ createMcpServer }, { serveStdio }] = await Promise.all([
      import('../../client/mcp/server.ts'),
      import('@modelcontextprotocol/server/stdio'),
    ])
    const deps = {
      version: readVersion(),
      roots,
      destinations: listDestinations(opened),
      upload: (files: readonly Entry[], id: string | undefined, ended: AbortSignal) =>
        uploadFor(
          { caller: agentBelow(roots) },
          files,
          id,
          AbortSignal.any([signal, ended]),
          opened,
          config === undefined ? [] : [['config', config]],
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

/** @throws Error for a root that is not a folder */
async function findRoots(given: readonly string[], cwd: string): Promise<[string, ...string[]]> {
  const [first = cwd, ...others] = given
  const find = async (folder: string): Promise<string> => {
    const path = resolve(cwd, folder)
    const isFolder = await stat(path).then(
      found => found.isDirectory(),
      () => false,
    )
    if (!isFolder) throw new Error(`--root ${folder}: the folder does not exist.`)
    return realpath(path)
  }
  return [await find(first), ...(await Promise.all(others.map(find)))]
}

/** The rights of an agent: it may only upload files below the roots. */
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
      return false // There are several destinations and no setting `default`.
    }
  }
  return uploader.destinations.map(idOf).map(id => ({ id, isDefault: isDefault(id) }))
}

async function uploadFor(
  who: UploadRights,
  files: readonly Entry[],
  id: string | undefined,
  signal: AbortSignal,
  opened: Opened,
  typed: readonly Typed[],
  terminal: Terminal,
): Promise<{ results: readonly Result[]; remark?: string }> {
  const [picbed, ...name] = id?.split('/') ?? []
  const uploads = createUploadsHere({ picbed, configName: name.join('/') }, opened, terminal, who)
  const results = await uploadAll(uploads, files, signal)
  const remarks = remarksOn(results, await uploads.explainUnreachable(), typed, terminal)
  return { results, ...(remarks.length > 0 && { remark: remarks.join('\n') }) }
}
