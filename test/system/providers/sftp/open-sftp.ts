import { expect, onTestFinished } from 'vitest'
import { UploadError } from '../../../../src/errors.ts'
import type { KnownHosts, OpenTarget } from '../../../../src/providers/contract.ts'
import { sftp } from '../../../../src/providers/sftp/index.ts'
import type { OpenSsh } from '../../../servers/openssh.ts'

export type Options = Record<string, unknown>

/** A target with the defaults of tests. Warnings fail the test unless they are expected. */
export async function openSftp(
  options: Options,
  warn: (message: string) => void = message => expect.fail(message),
  knownHosts?: KnownHosts,
): Promise<OpenTarget> {
  const config = sftp.config.parse({ host: '127.0.0.1', urlPrefix: 'https://img.example.com', ...options })
  expect(sftp.validate?.(config)).toBeUndefined()
  return await sftp.open(config, { name: 'Default', warn, knownHosts })
}

/** One that is closed when the test is over. */
export async function openForTest(
  options: Options,
  warn?: (message: string) => void,
  knownHosts?: KnownHosts,
): Promise<OpenTarget> {
  const target = await openSftp(options, warn, knownHosts)
  onTestFinished(() => target.close?.())
  return target
}

/** What it takes to be let in by OpenSSH. */
export function loginOf({ port, username, keyFile, fingerprint }: OpenSsh): Options {
  return { port, username, privateKeyFile: keyFile, hostFingerprint: fingerprint }
}

/** Retries transient failures, as the uploader does: a lost connection is noticed late. */
export async function persist<T>(work: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work()
    } catch (error) {
      if (attempt === 5 || !(error instanceof UploadError && error.retryable)) throw error
    }
  }
}
