import { qiniu } from '../../../src/providers/qiniu.ts'
import { describeVendor } from '../../helpers/s3-contract.ts'

describeVendor(qiniu)
