import { createHttpAgents, type HttpAgents } from '../../http/agents.ts'
import type { ProviderDeps, Target } from '../contract.ts'
import { createS3Client } from './client.ts'
import { type Attempt, explainS3 } from './explain.ts'
import { hasObject, probeBucket, removeObject, storeObject } from './operations.ts'
import type { S3Settings } from './settings.ts'

/** A connection on which nothing happens for so long is given up. */
const IDLE_TIMEOUT_MS = 60_000
const PROBE_PERMISSION = 's3:PutObject and s3:AbortMultipartUpload'

/**
 * A bucket.
 *
 * @param type id of the provider, for messages
 * @param agents for tests that lead connections elsewhere
 */
export function openS3(
  type: string,
  settings: S3Settings,
  { name, warn }: ProviderDeps,
  agents?: HttpAgents,
): Target {
  const label = `${type}/${name}`
  const { caFile, insecureTls } = settings.options
  if (insecureTls) {
    warn(`${label}: "insecureTls" accepts any certificate, also that of somebody in between. Use "caFile".`)
  }
  const connections = agents ?? createHttpAgents({ caFile, insecureTls, idleTimeoutMs: IDLE_TIMEOUT_MS })
  const s3 = createS3Client(settings, connections)
  const running = new Set<Promise<unknown>>()

  async function run<T>(attempt: Attempt, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    signal.throwIfAborted()
    const working = work()
    running.add(working)
    try {
      return await working
    } catch (error) {
      signal.throwIfAborted()
      throw explainS3(error, label, settings, attempt)
    } finally {
      running.delete(working)
    }
  }

  return {
    put: (object, signal) =>
      run({ what: `could not store "${object.key}"`, permission: 's3:PutObject' }, signal, async () => ({
        url: await storeObject(s3, settings, object, signal),
      })),
    check: signal =>
      run({ what: 'could not prepare a probe', permission: PROBE_PERMISSION }, signal, async () => {
        const limit = await probeBucket(s3, settings, signal)
        if (limit !== undefined) warn(`${label}: ${limit}`)
      }),
    exists: (key, signal) =>
      run({ what: `could not look for "${key}"`, permission: 's3:GetObject and s3:ListBucket' }, signal, () =>
        hasObject(s3, settings, key, signal),
      ),
    remove: (key, signal) =>
      run({ what: `could not remove "${key}"`, permission: 's3:DeleteObject' }, signal, () =>
        removeObject(s3, settings, key, signal),
      ),
    async close() {
      // Behind an abort parts are still taken back.
      await Promise.allSettled(running)
      connections.close()
    },
  }
}
