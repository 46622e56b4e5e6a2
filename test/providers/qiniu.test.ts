import { qiniu } from '../../src/providers/qiniu.ts'
import { describeVendor } from '../helpers/s3-contract.ts'

describeVendor(qiniu, ({ accessKeyId, secretAccessKey }) => ({
  accessKey: accessKeyId,
  secretKey: secretAccessKey,
  bucket: 'contract',
  area: 'us-east-1',
}))
