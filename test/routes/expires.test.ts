import { randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { formOf, post } from '../helpers/form.ts'
import { shareApp, startApp, type TestApp } from '../helpers/start-app.ts'

const DAY_MS = 24 * 60 * 60 * 1000
const local = (name: string, more: object = {}) => ({ [name]: { directory: name, serve: true, ...more } })

const app = shareApp({
  config: {
    default: 'local/both',
    providers: {
      local: {
        ...local('both', { expiry: { default: '30d', max: '90d' } }),
        ...local('most', { expiry: { max: '12h' } }),
        ...local('asked', { expiry: { default: 'never' } }),
        ...local('stays'),
      },
    },
  },
})

const send = (
  query: string,
  name = 'both',
  form = formOf({ 'a.txt': randomUUID() }),
  to: Pick<TestApp, 'url'> = app(),
) => post(`${to.url}/upload?configName=${name}${query}`, { body: form })

/** Days from now until the first file of an answer may go. */
function daysOf(answer: unknown): number | undefined {
  const { items } = answer as { items?: { expiresAt?: string }[] }
  const at = items?.[0]?.expiresAt
  return at === undefined ? undefined : Math.round(((Date.parse(at) - Date.now()) / DAY_MS) * 100) / 100
}

const inDays = (days: number) => new Date(Date.now() + days * DAY_MS).toISOString()

describe('when files may go', () => {
  it.for<[query: string, name: string, days: number | undefined]>([
    ['', 'both', 30],
    ['&expires=', 'both', 30],
    ['&expires=90m', 'both', 0.06],
    ['&expires=12h', 'both', 0.5],
    ['&expires=90d', 'both', 90],
    [`&expires=${inDays(7)}`, 'both', 7],
    [`&expires=${inDays(7).replace(/\..*/, '%2B00:00').replace('T', ' ')}`, 'both', 7],
    [`&expires=${inDays(7).replace(/\..*/, '+00:00')}`, 'both', 7],
    ['', 'most', 0.5],
    ['', 'asked', undefined],
    ['&expires=1d', 'asked', 1],
    ['&expires=NEVER', 'asked', undefined],
    ['', 'stays', undefined],
  ])('with "%s" at %s', async ([query, name, days]) => {
    const answer = await send(query, name)
    expect(answer.status).toBe(200)
    expect(daysOf(answer)).toBe(days)
  })

  it.for<[query: string, name: string, code: string, message: string]>([
    ['&expires=91d', 'both', 'expiry_forbidden', 'The maximum "expires" at local/both is 90d.'],
    ['&expires=never', 'both', 'expiry_forbidden', 'at local/both is 90d.'],
    [`&expires=${inDays(91)}`, 'both', 'expiry_forbidden', 'at local/both is 90d.'],
    ['&expires=13h', 'most', 'expiry_forbidden', 'at local/most is 12h.'],
    ['&expires=1d', 'stays', 'expiry_forbidden', 'Files at local/stays never expire'],
    [
      '&expires=never',
      'stays',
      'expiry_forbidden',
      'needs an "expiry" in its configuration, such as { "default": "never", "max": "90d" }',
    ],
    ['&expires=2020-01-01T00:00:00Z', 'both', 'invalid_request', 'in the past'],
    ...['0d', '-1d', '1w', '1.5h', '1', '1000000000d', 'soon', '2027-02-30T00:00:00Z', '2027-01-01'].map(
      (text): [string, string, string, string] => [
        `&expires=${text}`,
        'both',
        'invalid_request',
        '"expires"',
      ],
    ),
  ])('attack: "%s" is refused at %s', async ([query, name, code, message]) => {
    const answer = await send(query, name)
    expect(answer).toMatchObject({ status: 400, code })
    expect(answer.message).toContain(message)
    expect(answer.result).toBeUndefined()
  })

  it('a field of the form says it where the query does not and the destination can follow', async () => {
    const form = () => {
      const body = formOf({ 'a.txt': randomUUID() })
      body.append('expires', '2d')
      return body
    }
    expect(daysOf(await send('', 'both', form()))).toBe(2)
    expect(daysOf(await send('&expires=3d', 'both', form()))).toBe(3)
    expect(daysOf(await send('', 'stays', form()))).toBeUndefined()
  })

  it('counts to the request for an Idempotency-Key, and is in the answer that is kept', async () => {
    const ask = (query: string) =>
      post(`${app().url}/upload${query}`, {
        headers: { 'Idempotency-Key': 'k1' },
        body: formOf({ 'a.txt': 'of its own' }),
      })
    const first = await ask('?expires=5d')
    expect(daysOf(first)).toBe(5)
    expect(await ask('?expires=5d')).toMatchObject({ items: (first as unknown as { items: unknown }).items })
    expect(await ask('?expires=6d')).toMatchObject({ status: 422 })
  })
})

it('copies go with what they are copies of, whatever their own destination says', async () => {
  const config = {
    cleanup: { interval: '50ms' },
    default: 'local/main',
    keyTemplate: '{filename}{extname}',
    providers: {
      local: {
        ...local('main', { expiry: { default: '30d' }, mirrors: ['local/copy'] }),
        ...local('copy', { expiry: { max: '90d', default: '60d' } }),
      },
    },
  }
  const copied = await startApp({ config })
  await send('', 'copy', formOf({ 'b.txt': 'one' }), copied)
  await send('', 'main', formOf({ 'c.txt': 'one' }), copied)
  const { result } = await send('&expires=1s', 'main', formOf({ 'a.txt': 'one' }), copied)
  expect(result).toHaveLength(1)
  await expect.poll(copied.files).toEqual(['copy/b.txt', 'copy/c.txt', 'main/c.txt'])
})

it.for([
  ['itself', { imgur: { a: { clientId: 'x', expiry: { max: '1d' } } } }, 'imgur/a'],
  [
    'its mirror',
    {
      imgur: { a: { clientId: 'x' } },
      local: local('x', { expiry: { max: '1d' }, mirrors: ['imgur/a'] }),
    },
    'its mirror or fallback imgur/a',
  ],
] as const)('an expiry is a mistake where files could not be removed: %s', async ([, providers, message]) => {
  await expect(startApp({ config: { providers, default: Object.keys(providers)[0] } })).rejects.toThrow(
    message,
  )
})

it.for([
  ['{}', {}, 'needs "default" or "max"'],
  ['beyond most', { default: '31d', max: '30d' }, 'longer than its "max"'],
  ['nought', { default: '0d' }, '"30d"'],
  ['no unit', { max: '30' }, 'write "30s"'],
] as const)('an expiry that makes no sense is a mistake: %s', async ([, expiry, message]) => {
  await expect(startApp({ config: { providers: { local: local('x', { expiry }) } } })).rejects.toThrow(
    message,
  )
})

it('another spelling of a name gets a file of its own on disks that know no capitals, too', async () => {
  const linkOf = async (query: string, fileName: string) =>
    (await send(query, 'both', formOf({ [fileName]: 'the same' }))).result[0] as string
  const first = await linkOf('&expires=1h', 'Photo.txt')
  const other = await linkOf('&expires=90d', 'photo.txt')
  expect(other.toLowerCase()).toBe(first.toLowerCase().replace('.txt', '-2.txt'))
  expect(await linkOf('&expires=90d', 'Photo.txt')).toBe(first)
  expect(await linkOf('&expires=90d', 'photo.txt'), 'which is numbered again, and stored there again').toBe(
    other,
  )
})
