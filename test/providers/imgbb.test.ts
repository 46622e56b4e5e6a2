import { imgbb } from '../../src/providers/imgbb.ts'
import { describePreset } from '../helpers/http-exchange.ts'

describePreset({
  name: 'imgbb',
  provider: imgbb,
  options: base => ({
    apiKey: '0123456789abcdef0123456789abcdef',
    expiration: 600,
    url: `${base}/1/upload`,
  }),
  wrong: { apiKey: 'fedcba9876543210fedcba9876543210' },
  secrets: ['0123456789abcdef0123456789abcdef', 'fedcba9876543210fedcba9876543210'],
  deleteUrl: '{{base}}/2ndCYJK/670a7e48ddcb85ac340c717a41047e5c',
})
