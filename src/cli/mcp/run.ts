import { realpath, stat } from 'node:fs/promises'
import { resolve } from 'node:path'
import { uploadAll } from '../../client/uploads.ts'
import { readVersion } from '../../package.ts'
import { readChoice } from '../../uploader/destinations.ts'
import type { Caller } from '../../uploader/input.ts'
import type { Call } from '../define.ts'
import { remarksOn } from '../repeat.ts'
import { oneLine, type Terminal } from '../terminal.ts'
import { withDestinations } from '../with-uploads.ts'
import type { flags } from './index.ts'

/** `upload-server mcp`: serves one client until it closes standard input. */
export async function run({ options, typed }: Call<typeof flags>, terminal: Terminal): Promise<number> {
  const signal = terminal.untilInterrupted()
  const roots = await findRoots(options.root ?? [], terminal.cwd)
  return withDestinations(options, terminal, { caller: agentBelow(roots) }, async ({ to, list }) => {
    const [{ createMcpServer }, { serveStdio }] = await Promise.all([
      import('../../client/mcp/server.ts'),
      import('@modelcontextprotocol/server/stdio'),
    ])
    const create = () =>
      createMcpServer({
        version: readVersion(),
        roots,
        destinations: list,
        async upload(files, destination, ended) {
          const uploads = to(readChoice({ destination }))
          const results = await uploadAll(uploads, files, AbortSignal.any([signal, ended]))
          const remarks = remarksOn(results, await uploads.explainUnreachable(), typed, terminal)
          return { results, ...(remarks.length > 0 && { remark: remarks.join('\n') }) }
        },
      })
    await new Promise<void>(end => {
      const handle = serveStdio(
        () => {
          const server = create()
          server.server.onclose = end
          return server
        },
        { onerror: error => terminal.note(oneLine(error.message)) },
      )
      process.stdin.once('end', end)
      signal.addEventListener('abort', () => void handle.close().finally(end))
    })
    return 0
  })
}

/** @throws Error for a root that is not a folder */
async function findRoots(given: readonly string[], cwd: string): Promise<[string, ...string[]]> {
  const [first = cwd, ...others] = given
  const find = async (folder: string): Promise<string> => {
    const path = resolve(cwd, folder)
    const status = await stat(path).catch(() => undefined)
    if (!status?.isDirectory()) throw new Error(`--root ${folder}: the folder does not exist.`)
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
