import { onTestFinished } from 'vitest'
import { createConnections } from '../../src/http/connections.ts'
import type { Target } from '../../src/providers/contract.ts'
import { openS3, s3 } from '../../src/providers/s3/index.ts'
import { toCheckedTarget } from '../../src/providers/shared/checked-target.ts'
import { dialLoopback } from './dial-loopback.ts'

/** An S3 destination whose connections all lead to 127.0.0.1, until the end of the test. */
export function openLoopbackS3(options: Record<string, unknown>, connect = dialLoopback()): Target {
  const { close, http } = createConnections({}, connect)
  const opened = openS3(s3.config.parse(options), { learn() {}, http })
  const target = toCheckedTarget(opened, 's3/Default', close)
  onTestFinished(() => target.close?.())
  return target
}
