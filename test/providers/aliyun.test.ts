import { aliyun } from '../../src/providers/aliyun.ts'
import { describeVendor } from '../helpers/s3-contract.ts'

describeVendor(aliyun, ({ accessKeyId, secretAccessKey }) => ({
  accessKeyId,
  accessKeySecret: secretAccessKey,
  bucket: 'contract',
  area: 'oss-us-east-1',
}))
