import { describe, expect, it } from 'vitest'
import { lsky } from '../../src/providers/lsky.ts'
import { fromPicGo } from '../helpers/from-picgo.ts'
import { describePreset } from '../helpers/http-exchange.ts'

describePreset({
  name: 'lsky-v2',
  provider: lsky,
  options: base => ({
    url: base,
    token: '1|bYIULKv5CHKbPWQTE5Y',
    strategyId: 3,
    albumId: '7',
    permission: 'public',
  }),
  wrong: { token: '2|aNobodyHasThisToken' },
  secrets: ['1|bYIULKv5CHKbPWQTE5Y', '2|aNobodyHasThisToken'],
  deleteUrl: '{{base}}/user/images/delete/aBcDeF',
})

describePreset({
  name: 'lsky-v1',
  provider: lsky,
  options: base => ({ url: base, version: 'v1', token: 'f0e1d2c3b4a59687' }),
  wrong: { token: '7869a5b4c3d2e1f0' },
  secrets: ['f0e1d2c3b4a59687', '7869a5b4c3d2e1f0'],
})

describe('lsky options of PicList', () => {
  const translate = (old: Record<string, unknown>) => fromPicGo(lsky, old).options

  it('of version 2 lose the "Bearer" in front of the token', () => {
    const old = {
      version: 'V2',
      host: 'https://img.example.com/',
      token: 'Bearer 1|abc',
      strategyId: '3',
      albumId: '',
      permission: { name: 'public', value: 1 },
    }
    expect(translate(old)).toEqual({
      url: 'https://img.example.com/',
      version: 'v2',
      token: '1|abc',
      strategyId: '3',
      permission: 'public',
      keyTemplate: '{filename}{extname}',
    })
  })

  it.each([
    [0, 'private'],
    [1, 'public'],
    ['private(default)', undefined],
  ])('with the permission %s', (permission, expected) => {
    expect(translate({ host: 'https://img.example.com', permission })?.['permission']).toBe(expected)
  })
})
