import { expect } from 'vitest'
import { type ClipboardContent, type ClipboardOptions, readClipboard } from '../../src/clipboard/index.ts'
import { failureOf } from './failure-of.ts'

export const EMPTY = /^The clipboard is empty\. Copy an image/
export const NO_REFERENCE = /^The clipboard contains text that is neither an absolute path nor a URL/

export function read(
  env: NodeJS.ProcessEnv,
  options: Partial<ClipboardOptions> = {},
): Promise<ClipboardContent> {
  return readClipboard({ env, platform: 'linux', maxBytes: 20 * 1024 * 1024, timeoutMs: 10_000, ...options })
}

/** What a reading says that has to fail. It repeats no URL, which may hold a password. */
export async function failure(reading: Promise<unknown>): Promise<{ code: string; message: string }> {
  const { code, message } = await failureOf(reading)
  expect(message).not.toMatch(/https?:\/\//i)
  return { code, message }
}
