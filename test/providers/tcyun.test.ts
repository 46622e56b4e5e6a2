import { tcyun } from '../../src/providers/tcyun.ts'
import { describeVendor } from '../helpers/s3-contract.ts'

describeVendor(tcyun, ({ accessKeyId, secretAccessKey }) => ({
  secretId: accessKeyId,
  secretKey: secretAccessKey,
  bucket: 'contract',
  area: 'us-east-1',
}))
