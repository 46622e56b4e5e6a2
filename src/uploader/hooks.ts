import { createHmac } from 'node:crypto'
import { runProgram, tailOf } from '../flow/run-program.ts'
import { beginTimeLimit } from '../flow/time-limit.ts'
import { createConnections } from '../http/connections.ts'
import type { Outgoing } from '../http/proxy/outgoing.ts'
import type { Upload } from '../store/contract.ts'

/** A program or URL that is called after an upload. */
export interface Hook {
  readonly name: string
  /** Program and arguments, started without a shell. */
  readonly command?: readonly string[] | undefined
  /** Working directory of the command. Default: the root directory. */
  readonly folder?: string | undefined
  /** URL that gets the job in a POST request. */
  readonly webhook?: string | undefined
  /** The key of the HMAC that signs the webhook. */
  readonly secret?: string | undefined
  readonly timeoutMs: number
  /** Outbound proxies for the webhook, also passed to the command as variables. Default: none. */
  readonly outgoing?: Outgoing
  /** Whether the upload stays pending as long as the hook fails. Default true. */
  readonly required?: boolean
}

export interface HookDeps {
  readonly env: Readonly<Record<string, string | undefined>>
  /** Masks secrets in the output of a program. */
  mask(text: string): string
}

/** Limit of one variable, in bytes. Linux allows 128 KiB. */
const MOST_URLS = 64 * 1024

/**
 * Runs one hook for a job. It gets the job as JSON: a command on standard input, a webhook as its body, signed in
 * `X-Upload-Signature: sha256=<HMAC-SHA256 of the body, hex>`.
 *
 * @param signal stops the hook, as its time limit does
 * @throws Error with the reason
 */
export async function runHook(hook: Hook, job: Upload, deps: HookDeps, signal: AbortSignal): Promise<void> {
  const late = () => new Error(`it took longer than ${hook.timeoutMs / 1000} s`)
  const limit = beginTimeLimit(hook.timeoutMs, signal, late)
  try {
    limit.signal.throwIfAborted()
    if (hook.command) await runCommand(hook, job, deps, limit.signal)
    if (hook.webhook) await callWebhook(hook, hook.webhook, job, limit.signal)
  } finally {
    limit.end()
  }
}

function toJson({ id, createdAt, requestId, caller, destination, files }: Upload): string {
  return JSON.stringify({
    id,
    time: new Date(createdAt).toISOString(),
    requestId,
    caller,
    destination,
    files: files.map(({ index, origin, url, key, size, contentType, sha256, deleteUrl, expiresAt }) => ({
      index,
      origin,
      url,
      key,
      size,
      type: contentType,
      sha256,
      ...(deleteUrl && { deleteUrl }),
      ...(expiresAt !== undefined && { expiresAt: new Date(expiresAt).toISOString() }),
    })),
  })
}

function facts({ id, destination, files }: Upload): Record<string, string> {
  const urls = files.map(file => file.url)
  let length = 0
  const fitting = urls.filter(url => {
    length += url.length + 1
    return length <= MOST_URLS
  })
  return {
    UPLOAD_ID: id,
    UPLOAD_DESTINATION: destination,
    UPLOAD_COUNT: String(files.length),
    UPLOAD_URL: urls[0] ?? '',
    UPLOAD_URLS: fitting.join('\n'),
  }
}

/** The environment of the server without its own settings, because a hook must not get the upload key. */
function forCommands(env: HookDeps['env']): HookDeps['env'] {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith('UPLOAD_SERVER_')))
}

async function runCommand(
  { command = [], folder = '/', outgoing }: Hook,
  job: Upload,
  { env, mask }: HookDeps,
  signal: AbortSignal,
): Promise<void> {
  const { problem, output } = await runProgram(command, {
    env: { ...forCommands(env), ...outgoing?.variables, ...facts(job) },
    cwd: folder,
    input: toJson(job),
    signal,
  })
  if (problem !== undefined) throw new Error(problem + tailOf(output, mask))
}

async function callWebhook(hook: Hook, url: string, job: Upload, signal: AbortSignal): Promise<void> {
  const { http, close } = createConnections({ outgoing: hook.outgoing, idleTimeoutMs: 0 })
  const body = toJson(job)
  const signature = hook.secret && createHmac('sha256', hook.secret).update(body).digest('hex')
  const headers = {
    'Content-Type': 'application/json',
    'Idempotency-Key': `${job.id}:${hook.name}`,
    ...(signature && { 'X-Upload-Signature': `sha256=${signature}` }),
  }
  try {
    await http.send({ method: 'POST', url, headers, body }, signal)
  } finally {
    close()
  }
}
