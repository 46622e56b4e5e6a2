import { describe, expect, it } from 'vitest'
import { imgur } from '../../src/providers/imgur.ts'
import { fromPicGo } from '../helpers/from-picgo.ts'
import { describePreset } from '../helpers/http-exchange.ts'

describePreset({
  name: 'imgur',
  provider: imgur,
  options: base => ({ clientId: '0123456789abcde', url: `${base}/3/image` }),
  wrong: { clientId: 'edcba9876543210' },
  secrets: ['0123456789abcde', 'edcba9876543210'],
  deleteUrl: 'https://imgur.com/delete/gHiJkL2mNoPqRs3',
})

it('imgur needs a client id or a token', () => {
  expect(imgur.validate?.(imgur.config.parse({}))).toContain('Set "clientId" or "accessToken"')
})

describe('imgur options of PicGo and PicList', () => {
  const keyTemplate = '{filename}{extname}'
  it.each([
    ['of PicGo', { clientId: 'abc', proxy: '' }, { clientId: 'abc', keyTemplate }, []],
    [
      'of PicList with an account',
      { clientId: 'abc', username: 'me', accessToken: 'Bearer t0k', album: 'Holidays', proxy: '' },
      { accessToken: 't0k', keyTemplate },
      [expect.stringContaining('"album" was not imported')],
    ],
    [
      'a token without a user name, which PicList does not use',
      { clientId: 'abc', username: '', accessToken: 't0k', proxy: '127.0.0.1:7890' },
      { clientId: 'abc', keyTemplate, proxy: 'http://127.0.0.1:7890' },
      [],
    ],
    [
      'a proxy that is none',
      { clientId: 'abc', proxy: 'socks4://127.0.0.1:7890' },
      { clientId: 'abc', keyTemplate },
      [expect.stringContaining('"proxy" was not imported')],
    ],
  ])('%s', (_, old, options, notes) => {
    expect(fromPicGo(imgur, old)).toEqual({ options, notes })
  })
})
