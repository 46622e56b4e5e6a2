import { expect, it } from 'vitest'
import { chevereto } from '../../src/providers/chevereto.ts'
import { describePreset } from '../helpers/http-exchange.ts'

describePreset({
  name: 'chevereto',
  provider: chevereto,
  options: base => ({ apiKey: 'chv_0123456789', url: `${base}/`, album: 'dkB', expiration: 'P3D' }),
  wrong: { apiKey: 'chv_9876543210' },
  secrets: ['chv_0123456789', 'chv_9876543210'],
  deleteUrl: '{{base}}/image/ZfGd/delete/e8b07479818b',
})

it.each([
  ['P3D', true],
  ['PT5M', true],
  ['P1DT12H', true],
  ['P', false],
  ['3 days', false],
  ['P3DT', false],
])('chevereto takes %s as a duration: %s', (expiration, isValid) => {
  const options = { url: 'https://img.example.com', apiKey: 'abc', expiration }
  expect(chevereto.config.safeParse(options).success).toBe(isValid)
})
