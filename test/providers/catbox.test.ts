import { catbox } from '../../src/providers/catbox.ts'
import { describePreset } from '../helpers/http-exchange.ts'

describePreset({
  name: 'catbox',
  provider: catbox,
  options: base => ({ userhash: '0123456789abcdef', url: `${base}/user/api.php` }),
  wrong: { userhash: 'fedcba9876543210' },
  secrets: ['0123456789abcdef', 'fedcba9876543210'],
})
