import { expect, it } from 'vitest'
import { smms } from '../../src/providers/smms.ts'
import { fromPicGo } from '../helpers/from-picgo.ts'
import { describePreset } from '../helpers/http-exchange.ts'

describePreset({
  name: 'smms',
  provider: smms,
  options: base => ({
    token: 'see-0123456789',
    domain: 'img.example.com',
    url: `${base}/api/v1/file/upload`,
  }),
  wrong: { token: 'see-9876543210' },
  secrets: ['see-0123456789', 'see-9876543210'],
  deleteUrl: '{{base}}/api/v1/file/delete/delete-hash',
})

it.each([
  [
    'without a backup domain go to S.EE',
    { token: 'abc', backupDomain: '' },
    { token: 'abc', keyTemplate: '{filename}{extname}' },
    [expect.stringContaining('SM.MS is now S.EE')],
  ],
  [
    'with one go there, in the old form',
    { token: 'abc', backupDomain: 'smms.example' },
    { token: 'abc', url: 'https://smms.example/api/v2/upload', keyTemplate: '{filename}{extname}' },
    [],
  ],
])('smms options of PicGo %s', (_, old, options, notes) => {
  expect(fromPicGo(smms, old)).toEqual({ options, notes })
})
