import { realpath } from 'node:fs/promises'
import { relative, resolve, sep } from 'node:path'
import { McpServer } from '@modelcontextprotocol/server'
import { isBelowAny } from '../files/own-paths.ts'
import * as z from '../packages/zod.ts'

/** What became of one file. */
interface UploadedFile {
  /** As the agent named it. */
  readonly path: string
  readonly url?: string
  readonly error?: string
}

export interface McpDeps {
  readonly version: string
  /** Real paths of the folders below which files may be uploaded. Relative paths begin at the first. */
  readonly roots: readonly [string, ...string[]]
  /** `provider/configName`, and which is taken when none is named. */
  readonly destinations: readonly { readonly id: string; readonly isDefault: boolean }[]
  /**
   * Uploads files by their absolute paths; an answer for each, in order.
   *
   * @param destination one of `destinations`; undefined: the default
   * @throws Error with a sentence for the agent
   */
  upload(
    paths: readonly string[],
    destination: string | undefined,
    signal: AbortSignal,
  ): Promise<{ results: readonly ({ url: string } | { error: string })[]; remark?: string }>
}

/** Most files of one call. */
const MOST_FILES = 50
/** Most characters of a path; no system takes more. */
const LONGEST_PATH = 4096

/** A server of the Model Context Protocol: an agent names files and gets their links. */
export function createMcpServer({ version, roots, destinations, upload }: McpDeps): McpServer {
  const server = new McpServer(
    { name: 'upload-server', version },
    {
      instructions: `Uploads files below ${roots.join(', ')} and gives their links, which may be public: upload only what the user wants to be seen.`,
    },
  )
  server.registerTool(
    'upload_files',
    {
      title: 'Upload files',
      description: `Upload files and get one link for each. Files must lie below: ${roots.join(', ')}. Files and folders whose names begin with a dot are refused. The links may be public.`,
      inputSchema: z.object({
        paths: z
          .array(z.string().min(1).max(LONGEST_PATH))
          .min(1)
          .max(MOST_FILES)
          .describe(`Paths of files, absolute or relative to ${roots[0]}`),
        destination: z
          .string()
          .max(200)
          .optional()
          .describe('One of those of list_destinations, such as "s3/blog". Default: the default destination'),
      }),
      outputSchema: z.object({
        files: z.array(
          z.object({ path: z.string(), url: z.string().optional(), error: z.string().optional() }),
        ),
        remark: z.string().optional(),
      }),
      annotations: {
        readOnlyHint: false,
        destructiveHint: false,
        idempotentHint: false,
        openWorldHint: true,
      },
    },
    async ({ paths, destination }, { mcpReq }) => {
      const files: UploadedFile[] = []
      const allowed: string[] = []
      for (const path of paths) {
        const absolute = resolve(roots[0], path)
        const error = await findFault(absolute, roots)
        files.push(error === undefined ? { path } : { path, error })
        if (error === undefined) allowed.push(absolute)
      }
      const { results, remark } =
        allowed.length > 0 ? await upload(allowed, destination, mcpReq.signal) : { results: [] }
      const left = [...results]
      const structuredContent = {
        files: files.map(file => (file.error === undefined ? { ...file, ...left.shift() } : file)),
        ...(remark !== undefined && { remark }),
      }
      const lines = structuredContent.files.map(
        ({ path, url, error }) => `${path}: ${url ?? `failed: ${error}`}`,
      )
      return {
        content: [{ type: 'text', text: [...lines, ...(remark === undefined ? [] : [remark])].join('\n') }],
        structuredContent,
        isError: structuredContent.files.some(({ url }) => url === undefined),
      }
    },
  )
  server.registerTool(
    'list_destinations',
    {
      title: 'List destinations',
      description: 'List the places files can be uploaded to.',
      outputSchema: z.object({
        destinations: z.array(z.object({ id: z.string(), isDefault: z.boolean() })),
      }),
      annotations: { readOnlyHint: true, openWorldHint: false },
    },
    () => ({
      content: [
        {
          type: 'text',
          text: destinations.map(({ id, isDefault }) => `${id}${isDefault ? ' (default)' : ''}`).join('\n'),
        },
      ],
      structuredContent: { destinations: [...destinations] },
    }),
  )
  return server
}

/**
 * Why an agent may not have a file uploaded, which what it reads may have told it to: `.env` and `.git` are no files for
 * others. What lies outside is refused in the same words, whether it is there or not.
 */
async function findFault(path: string, roots: readonly string[]): Promise<string | undefined> {
  const real = await realpath(path).catch(() => path)
  const around = roots.filter(root => isBelowAny(path, [root]) && isBelowAny(real, [root]))
  if (around.length === 0) return `it lies outside of ${roots.join(', ')}; --root names further folders`
  const isHidden = (root: string) =>
    [path, real].some(one =>
      relative(root, one)
        .split(sep)
        .some(name => name.startsWith('.')),
    )
  return around.every(isHidden)
    ? 'its name or that of a folder of it begins with a dot; a --root below is needed for that'
    : undefined
}
