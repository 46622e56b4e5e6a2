import { expect, onTestFinished } from 'vitest'
import type { ConnectionSettings } from '../../src/http/connections.ts'
import { objectOf } from '../../src/provider-tests/objects.ts'
import type { OpenTarget, Provider, ProviderDeps, Stored, Target } from '../../src/providers/contract.ts'

export const never = (): AbortSignal => new AbortController().signal

export type Options = ConnectionSettings & Readonly<Record<string, unknown>>

/**
 * Opens a provider as the server does.
 *
 * @param deps what else the server gives it. Without a `warn`, warnings fail the test
 */
export async function openTarget(
  provider: Provider,
  { caFile, insecureTls, ...options }: Options,
  deps: Partial<ProviderDeps> = {},
): Promise<OpenTarget> {
  const config = provider.config.strict().parse(options)
  expect(provider.validate?.(config)).toBeUndefined()
  const warn = (message: string) => expect.fail(message)
  return await provider.open(config, { name: 'Default', warn, caFile, insecureTls, ...deps })
}

/** The same until the end of the test. */
export async function open(...parameters: Parameters<typeof openTarget>): Promise<OpenTarget> {
  const target = await openTarget(...parameters)
  onTestFinished(() => target.close?.())
  return target
}

/** Stores bytes or text. */
export function put(
  target: Target,
  key: string,
  content: string | Buffer = 'bytes',
  signal = never(),
): Promise<Stored> {
  return target.put(objectOf(key, Buffer.from(content), 'image/png'), signal)
}

/** What a visitor gets. */
export async function fetchPublic({ url }: Stored): Promise<Buffer> {
  const response = await fetch(url)
  if (!response.ok) throw new Error(`status ${response.status}`)
  return Buffer.from(await response.arrayBuffer())
}

/** What is wrong with options as they stand in a file, alone or together. */
export function problemOf(provider: Provider, options: Record<string, unknown>): string | undefined {
  const result = provider.config.strict().safeParse(options)
  return result.success ? provider.validate?.(result.data as never) : result.error.issues[0]?.message
}
