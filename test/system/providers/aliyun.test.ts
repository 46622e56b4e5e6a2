import { aliyun } from '../../../src/providers/aliyun.ts'
import { describeVendor } from '../../helpers/s3-contract.ts'

describeVendor(aliyun)
