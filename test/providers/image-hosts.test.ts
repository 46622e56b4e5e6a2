import { expect, it } from 'vitest'
import { catbox } from '../../src/providers/catbox.ts'
import { chevereto } from '../../src/providers/chevereto.ts'
import { imgbb } from '../../src/providers/imgbb.ts'
import { imgur } from '../../src/providers/imgur.ts'
import { lsky } from '../../src/providers/lsky.ts'
import { piclist } from '../../src/providers/piclist.ts'
import { loadProviders } from '../../src/providers/registry.ts'
import { smms } from '../../src/providers/smms.ts'
import { examplesOf } from '../helpers/documents.ts'
import { describePreset, type Preset } from '../helpers/form-hosts.ts'
import { play } from '../helpers/player.ts'
import { open, put } from '../helpers/target.ts'

const HOSTS = (await loadProviders()).filter(
  ({ about, type }) => about?.family === 'host' || type === 'piclist',
)

/** Responses that have a success of other hosts, or of a login page. None says what was stored. */
const FORGED = [
  [200, '<!DOCTYPE html><title>Log in</title>'],
  [200, ''],
  [200, '{"ok":true,"success":true,"status":true,"code":200,"message":"hello"}'],
  [204, ''],
  [302, ''],
] as const

it.each(HOSTS.map(host => [host.type, host] as const))(
  '%s sends the file, and takes nothing for stored that another server answers',
  async (type, provider) => {
    const [example] = Object.values(examplesOf(type))
    for (const [status, body] of FORGED) {
      const { url, requests } = await play({ status, body })
      const target = await open(provider, { ...example, url })
      await expect(put(target, 'a/picture.png', 'the bytes')).rejects.toMatchObject({
        code: 'destination_failed',
      })
      expect(requests[0]?.text).toContain('the bytes')
    }
  },
)

/** Hosts with the examples of their documentation. */
const PRESETS: readonly Preset[] = [
  {
    name: 'catbox',
    provider: catbox,
    options: base => ({ userhash: '0123456789abcdef', url: `${base}/user/api.php` }),
    wrong: { userhash: 'fedcba9876543210' },
  },
  {
    name: 'chevereto',
    provider: chevereto,
    options: base => ({ apiKey: 'chv_0123456789', url: `${base}/`, album: 'dkB', expiration: 'P3D' }),
    wrong: { apiKey: 'chv_9876543210' },
    deleteUrl: '{{base}}/image/ZfGd/delete/e8b07479818b',
  },
  {
    name: 'imgbb',
    provider: imgbb,
    options: base => ({
      apiKey: '0123456789abcdef0123456789abcdef',
      expiration: 600,
      url: `${base}/1/upload`,
    }),
    wrong: { apiKey: 'fedcba9876543210fedcba9876543210' },
    deleteUrl: '{{base}}/2ndCYJK/670a7e48ddcb85ac340c717a41047e5c',
  },
  {
    name: 'imgur',
    provider: imgur,
    options: base => ({ clientId: '0123456789abcde', url: `${base}/3/image` }),
    wrong: { clientId: 'edcba9876543210' },
    deleteUrl: 'https://imgur.com/delete/gHiJkL2mNoPqRs3',
  },
  {
    name: 'lsky-v2',
    provider: lsky,
    options: url => ({
      ...{ url, token: '1|bYIULKv5CHKbPWQTE5Y' },
      ...{ strategyId: 3, albumId: '7', permission: 'public' },
    }),
    wrong: { token: '2|aNobodyHasThisToken' },
    deleteUrl: '{{base}}/user/images/delete/aBcDeF',
  },
  {
    name: 'lsky-v1',
    provider: lsky,
    options: url => ({ url, version: 'v1', token: 'f0e1d2c3b4a59687' }),
    wrong: { token: '7869a5b4c3d2e1f0' },
  },
  {
    name: 'piclist',
    provider: piclist,
    options: url => ({ url, serverKey: 'the key of the other server' }),
    wrong: { serverKey: 'another key' },
  },
  {
    name: 'smms',
    provider: smms,
    options: base => ({
      token: 'see-0123456789',
      domain: 'img.example.com',
      url: `${base}/api/v1/file/upload`,
    }),
    wrong: { token: 'see-9876543210' },
    deleteUrl: '{{base}}/api/v1/file/delete/delete-hash',
  },
]
for (const preset of PRESETS) describePreset(preset)

it.each([
  ['P3D', true],
  ['P1DT12H', true],
  ['P', false],
  ['3 days', false],
  ['P3DT', false],
])('chevereto takes %s as a duration: %s', (expiration, isValid) => {
  const options = { url: 'https://img.example.com', apiKey: 'abc', expiration }
  expect(chevereto.config.safeParse(options).success).toBe(isValid)
})

it('imgur needs a client id or a token', () => {
  expect(imgur.validate?.(imgur.config.parse({}))).toContain('Set "clientId" or "accessToken"')
})
