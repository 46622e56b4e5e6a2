import { createConnections } from '../../src/http/connections.ts'
import type { Target } from '../../src/providers/contract.ts'
import { openS3, s3 } from '../../src/providers/s3/index.ts'
import { toCheckedTarget } from '../../src/providers/shared/checked-target.ts'
import { dialLoopback } from './dial-loopback.ts'

/** An S3 destination whose connections all lead to 127.0.0.1, by options as they stand in a file. */
export function openLoopbackS3(options: Record<string, unknown>, connect = dialLoopback()): Target {
  const { close, http } = createConnections({}, connect)
  return toCheckedTarget(openS3(s3.config.parse(options), { learn() {}, http }), 's3/Default', close)
}
