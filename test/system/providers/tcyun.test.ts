import { tcyun } from '../../../src/providers/tcyun.ts'
import { describeVendor } from '../../helpers/s3-contract.ts'

describeVendor(tcyun)
