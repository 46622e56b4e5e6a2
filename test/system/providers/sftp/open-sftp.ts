import { UploadError } from '../../../../src/errors.ts'
import type { ProviderDeps } from '../../../../src/providers/contract.ts'
import { sftp } from '../../../../src/providers/sftp/index.ts'
import { type Options, open } from '../../../helpers/target.ts'
import type { OpenSsh } from '../../../servers/openssh.ts'

/** A target with the defaults of tests. Warnings fail the test unless they are expected. */
export const openSftp = (options: Options, deps?: Partial<ProviderDeps>) =>
  open(sftp, { host: '127.0.0.1', urlPrefix: 'https://img.example.com', ...options }, deps)

/** What it takes to be let in by OpenSSH. */
export const loginOf = ({ port, username, keyFile, fingerprint }: OpenSsh) => ({
  ...{ host: '127.0.0.1', urlPrefix: 'https://img.example.com' },
  ...{ port, username, privateKeyFile: keyFile, hostFingerprint: fingerprint },
})

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
