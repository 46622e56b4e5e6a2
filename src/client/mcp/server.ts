import { McpServer } from '@modelcontextprotocol/server'
import * as z from '../../packages/zod.ts'
import { type Entry, entryOfForeign } from '../entries.ts'
import type { Result } from '../result.ts'

/** Result of one file. */
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
  /** `provider/configName`, and which is taken when none is named. Undefined if only the server of the uploads knows them. */
  readonly destinations: readonly { readonly id: string; readonly isDefault: boolean }[] | undefined
  /**
   * Uploads files. What was opened in their places is asked about once more.
   *
   * @param destination one of `destinations`; undefined: the default
   * @throws Error with a sentence for the agent
   */
  upload(
    files: readonly Entry[],
    destination: string | undefined,
    signal: AbortSignal,
  ): Promise<{
    /** For each file, in order. */
    readonly results: readonly Result[]
    readonly remark?: string
  }>
}

/** Most files of one call. */
const MOST_FILES = 50
/** Most characters of a path; no system takes more. */
const LONGEST_PATH = 4096

/** A prompt injection may have made the agent ask for a file such as `.env`, so it gets nothing that the roots do not allow. */
const ADVICE = 'To allow a folder, add it with --root'

/** A server of the Model Context Protocol: an agent names files and gets their links. */
export function createMcpServer({ version, roots, destinations, upload }: McpDeps): McpServer {
  const server = new McpServer(
    { name: 'upload-server', version },
    {
      instructions: `Uploads files below ${roots.join(', ')} and returns their links. The links may be public, so upload only files that the user wants to publish.`,
    },
  )
  server.registerTool(
    'upload_files',
    {
      title: 'Upload files',
      description: `Upload files and return one link for each. Files must be below: ${roots.join(', ')}. Files and folders whose names begin with a dot are rejected. The links may be public.`,
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
          .describe(
            `A destination${destinations ? ' that list_destinations returns' : ''}, such as "s3/blog". Default: the default destination`,
          ),
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
      const entries = await Promise.all(
        paths.map(async path => {
          const entry = await entryOfForeign(path, { folders: roots, advice: ADVICE })
          return { ...entry, name: entry.path }
        }),
      )
      const allowed = entries.filter(({ fault }) => fault === undefined)
      const { results, remark } =
        allowed.length > 0 ? await upload(allowed, destination, mcpReq.signal) : { results: [] }
      const structuredContent = {
        files: entries.map((entry, index): UploadedFile => {
          const path = paths[index] ?? ''
          const { url, error = 'no response' } = results[allowed.indexOf(entry)] ?? {}
          return url === undefined ? { path, error: entry.fault ?? error } : { path, url }
        }),
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
  if (destinations === undefined) return server
  server.registerTool(
    'list_destinations',
    {
      title: 'List destinations',
      description: 'List the destinations that files can be uploaded to.',
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
