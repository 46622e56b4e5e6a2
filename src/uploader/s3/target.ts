import type { ProviderDeps, Target } from '../provider.ts'
import { type Agents, connectS3, createAgents, type S3Connection } from './client.ts'
import { type Attempt, explainS3 } from './explain.ts'
import { hasObject, probeBucket, removeObject, storeObject } from './operations.ts'
import type { S3Settings } from './settings.ts'

const PROBE_PERMISSION = 's3:PutObject and s3:AbortMultipartUpload'

/**
 * A bucket. The SDK is loaded by the first call.
 *
 * @param type id of the provider, for messages
 * @param makeAgents for tests that lead connections elsewhere
 */
export function openS3(
  type: string,
  settings: S3Settings,
  { name, warn }: ProviderDeps,
  makeAgents: () => Promise<Agents> = () =>
    createAgents(settings.options.caFile, settings.options.insecureTls),
): Target {
  const label = `${type}/${name}`
  if (settings.options.insecureTls) {
    warn(`${label}: "insecureTls" accepts any certificate, also that of somebody in between. Use "caFile".`)
  }
  const { run, close } = createRunner(
    async () => connectS3(settings, await makeAgents()),
    (error, attempt) => explainS3(error, label, settings, attempt),
  )
  return {
    put: (object, signal) =>
      run({ what: `could not store "${object.key}"`, permission: 's3:PutObject' }, signal, async s3 => ({
        url: await storeObject(s3, settings, object, signal),
      })),
    check: signal =>
      run({ what: 'could not prepare a probe', permission: PROBE_PERMISSION }, signal, s3 =>
        probeBucket(s3, settings, signal),
      ),
    exists: (key, signal) =>
      run({ what: `could not look for "${key}"`, permission: 's3:GetObject and s3:ListBucket' }, signal, s3 =>
        hasObject(s3, settings, key, signal),
      ),
    remove: (key, signal) =>
      run({ what: `could not remove "${key}"`, permission: 's3:DeleteObject' }, signal, s3 =>
        removeObject(s3, settings, key, signal),
      ),
    close,
  }
}

interface Runner {
  run<T>(attempt: Attempt, signal: AbortSignal, work: (s3: S3Connection) => Promise<T>): Promise<T>
  close(): Promise<void>
}

/** Connects when there is something to do, and waits at the end for what still goes on behind an abort. */
function createRunner(
  connect: () => Promise<S3Connection>,
  explain: (error: unknown, attempt: Attempt) => Error,
): Runner {
  let connection: Promise<S3Connection> | undefined
  const running = new Set<Promise<unknown>>()

  async function reach(attempt: Attempt): Promise<S3Connection> {
    connection ??= connect()
    try {
      return await connection
    } catch (error) {
      connection = undefined
      throw explain(error, attempt)
    }
  }

  return {
    async run(attempt, signal, work) {
      signal.throwIfAborted()
      const working = work(await reach(attempt))
      running.add(working)
      try {
        return await working
      } catch (error) {
        signal.throwIfAborted()
        throw explain(error, attempt)
      } finally {
        running.delete(working)
      }
    },
    async close() {
      await Promise.allSettled(running)
      const s3 = await connection?.catch(() => undefined)
      s3?.close()
    },
  }
}
