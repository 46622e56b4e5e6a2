import { expect } from 'vitest'
import { createConnections } from '../../src/http/connections.ts'
import type { Target } from '../../src/providers/contract.ts'
import { openS3, s3 } from '../../src/providers/s3/index.ts'
import { toCheckedTarget } from '../../src/providers/shared/checked-target.ts'
import { dialLoopback } from './dial-loopback.ts'

/** An S3 destination whose connections all lead to 127.0.0.1, by options as they stand in a file. */
export function openLoopbackS3(options: Record<string, unknown>, connect = dialLoopback()): Target {
  const { close, http } = createConnections({}, connect)
  const context = { name: 'Default', warn: (message: string) => expect.fail(message), learn() {}, http }
  return toCheckedTarget(openS3('s3', s3.config.parse(options), context), 's3/Default', close)
}
