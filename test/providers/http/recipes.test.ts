import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { http } from '../../../src/providers/http/index.ts'
import { describeFormHost, describePreset } from '../../helpers/form-hosts.ts'
import { play } from '../../helpers/player.ts'
import { open, put } from '../../helpers/target.ts'

/** The configurations of docs/destinations/http.md, by their names. */
const PAGE = readFileSync(new URL('../../../docs/destinations/http.md', import.meta.url), 'utf8')
const RECIPES = Object.assign(
  {},
  ...[...PAGE.matchAll(/^```json\n([\s\S]*?)^```$/gm)].map(
    ([, text = '']) => JSON.parse(text).providers.http,
  ),
) as Record<string, Record<string, unknown>>

/** A recipe whose addresses are at another host, the API below `base`, and whose secrets are these. */
function recipe(name: string, secrets?: Record<string, string>) {
  return (base: string) => {
    const { origin, pathname } = new URL(String(RECIPES[name]?.['url']))
    const resultUrl = String(RECIPES[name]?.['resultUrl']).replace(origin, new URL(base).origin)
    return { ...RECIPES[name], url: base + pathname, resultUrl, ...(secrets && { secrets }) }
  }
}

/** A recipe with one secret: the right one, and a wrong one. */
const preset = (name: string, secret: string, right: string, wrong: string, deleteUrl?: string) => ({
  name,
  provider: http,
  options: recipe(name, { [secret]: right }),
  wrong: { secrets: { [secret]: wrong } },
  ...(deleteUrl && { deleteUrl }),
})

describeFormHost(preset('cloudflare-images', 'token', 'cf-0123456789', 'cf-9876543210'))
for (const one of [
  preset('cloudinary', 'preset', 'preset-0123456789', 'preset-9876543210'),
  preset('cloudflare-imgbed', 'token', 'imgbed-0123456789', 'imgbed-9876543210'),
  preset(
    'easyimages',
    'token',
    '1c17b11693cb5ec63859b091c5b9c1b2',
    '2b1c9b5c190b95836ce5bc39611b71c1',
    '{{base}}/app/del.php?hash=a1b2c3',
  ),
  preset('zipline', 'token', 'zipline-0123456789', 'zipline-9876543210'),
  preset('slink', 'key', 'sk_0123456789', 'sk_9876543210'),
  { name: 'immich', provider: http, options: recipe('immich') },
])
  describePreset(one)

it('what Immich has already is taken for stored, at its first address', async () => {
  const { url } = await play({ status: 200, body: { id: '7b0c', status: 'duplicate' } })
  const stored = await put(await open(http, recipe('immich')(url)), 'a.png')
  expect(stored).toEqual({ url: `${url}/api/assets/7b0c/original?slug=blog` })
})
