import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { expect, it, onTestFinished } from 'vitest'
import { objectOf } from '../../src/provider-tests/objects.ts'
import { openProvider } from '../../src/provider-tests/open-provider.ts'
import { kit, type Plugin } from '../../src/providers/kit.ts'

const PAGE = readFileSync(join(import.meta.dirname, '../../docs/contributing/write-a-provider.md'), 'utf8')

it('the page names everything that is in the kit', () => {
  const names = Object.keys(kit)
  expect(names).toHaveLength(12)
  expect(names.filter(name => !PAGE.includes(`\`${name}\``))).toEqual([])
})

it('the image host of the page stores a file', async () => {
  const example = new URL('../../docs/examples/upload-server-provider-shelf/', import.meta.url)
  const { startShelf } = await import(new URL('shelf-server.js', example).href)
  const { default: plugin } = (await import(new URL('index.js', example).href)) as { default: Plugin }
  const shelf = await startShelf('token-of-the-shelf')
  onTestFinished(shelf.close)
  const url = `http://127.0.0.1:${shelf.port}`
  const { put } = await openProvider(plugin, { url, token: 'token-of-the-shelf' })
  const stored = await put(objectOf('a.png', Buffer.from('x')), new AbortController().signal)
  expect(await (await fetch(stored.url)).text()).toBe('x')
  await fetch(stored.deleteUrl ?? '')
  expect((await fetch(stored.url)).status).toBe(404)
})

it('the provider of the page that is not an image host stores a file', async () => {
  const code = /^export default \(\{ defineProvider.*?^ {2}\}\)$/ms.exec(PAGE)?.[0] ?? ''
  const { default: plugin } = (await import(`data:text/javascript,${encodeURIComponent(code)}`)) as {
    default: Plugin
  }
  const server = createServer(async (request, response) => {
    const bytes = await buffer(request)
    const sha256 = createHash('sha256').update(bytes).digest('hex')
    response.writeHead(201, { 'Stored-SHA256': request.url === '/img/a%20b.png' ? sha256 : '' }).end()
  }).listen(0, '127.0.0.1')
  onTestFinished(() => void server.close())
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/img`
  const { put, location, close } = await openProvider(plugin, { url })
  onTestFinished(() => close?.())
  const { signal } = new AbortController()
  await expect(put(objectOf('a b.png', Buffer.from('x')), signal)).resolves.toEqual({
    url: `${url}/a%20b.png`,
  })
  await expect(put(objectOf('c.png', Buffer.from('x')), signal)).rejects.toThrow('the file was damaged')
  expect(location).toMatch(/^drawer:\/\/localhost:\d+\/img\/$/)
})
