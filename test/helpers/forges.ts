import { expect, onTestFinished } from 'vitest'
import { destinationSchema } from '../../src/config/destination.ts'
import type { UploadError } from '../../src/errors.ts'
import { beginTimeLimit } from '../../src/flow/time-limit.ts'
import type { Provider, Target } from '../../src/providers/contract.ts'
import { gitea } from '../../src/providers/gitea.ts'
import { gitlab } from '../../src/providers/gitlab.ts'
import { openDestinations } from '../../src/uploader/open.ts'
import { sendObject } from '../../src/uploader/send.ts'
import type { ForgeKind } from '../servers/forge-dialects.ts'
import { type ForgeReplay, startForgeReplay } from '../servers/forge-replay.ts'
import { failureOf as anyFailureOf } from './failure-of.ts'
import { objectOf } from './provider-contract.ts'

export const FORGES: Readonly<Record<ForgeKind, Provider>> = {
  gitea,
  gitlab,
}

/** Opens a destination of any forge as a configuration would. */
export async function openForge(provider: Provider, options: Record<string, unknown>): Promise<Target> {
  const config = provider.config.parse({ repo: 'octo/img', ...options })
  expect(provider.validate?.(config)).toBeUndefined()
  return await provider.open(config, { name: 'Default', warn: message => expect.fail(message) })
}

/** A replayed forge and a destination there, for one test that must leave no request the documentation does not know. */
export async function startForge(
  kind: ForgeKind,
  options: Record<string, unknown> = {},
): Promise<{ forge: ForgeReplay; target: Target }> {
  const forge = await startForgeReplay(kind)
  const { apiUrl, token } = forge
  const target = await openForge(FORGES[kind], { apiUrl, token, ...options })
  onTestFinished(async () => {
    await target.close?.()
    await forge.close()
    expect(forge.violations).toEqual([])
  })
  return { forge, target }
}

/** Delivers as an upload does: one at a time, and again after failures that pass. */
export async function deliverTo(target: Target, keys: readonly string[], retries: number): Promise<void> {
  const provider: Provider = { ...FORGES.gitea, open: () => target }
  const common = destinationSchema.parse({})
  const named = { type: 'gitea', name: 'Default' }
  const [destination] = await openDestinations(
    [{ ...named, provider, options: {}, common }],
    '{filename}',
    expect.fail,
  )
  const send = async (key: string) => {
    const limit = beginTimeLimit(10_000, new AbortController().signal, () => new Error('the time is up'))
    await sendObject(destination!, objectOf(key, Buffer.from(`at ${key}`)), retries, limit).finally(limit.end)
  }
  await Promise.all(keys.map(send))
}

/** The error of something that has to fail, which may be shown to a client. */
export async function failureOf(promise: Promise<unknown> | undefined): Promise<UploadError> {
  const error = await anyFailureOf(Promise.resolve(promise))
  expect(error.message).not.toMatch(/:\/\//)
  return error
}
