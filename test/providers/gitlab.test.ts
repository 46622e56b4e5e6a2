import { describe, expect, it } from 'vitest'
import { gitlab } from '../../src/providers/gitlab.ts'
import { openForge } from '../helpers/forges.ts'
import { fetchPublic } from '../helpers/http-exchange.ts'
import { describeProvider } from '../helpers/provider-contract.ts'
import { startForgeReplay } from '../servers/forge-replay.ts'
import { startProxy } from '../servers/proxy.ts'

describeProvider('gitlab', async () => {
  const forge = await startForgeReplay('gitlab')
  const { apiUrl, token } = forge
  const { port, pathname } = new URL(apiUrl)
  const proxy = await startProxy([Number(port)])
  const openAt = (at: number) => openForge(gitlab, { apiUrl: `http://127.0.0.1:${at}${pathname}`, token })
  return {
    target: await openForge(gitlab, { apiUrl, token }),
    fetch: fetchPublic,
    secrets: [token, 'token-of-nobody'],
    withBadCredentials: () => openForge(gitlab, { apiUrl, token: 'token-of-nobody' }),
    breakable: async () => ({ ...proxy, target: await openAt(proxy.port) }),
    forgeable: { port: Number(port), open: openAt },
    without: { largeFiles: 'the replayed server holds whole bodies; github.test.ts sends large ones' },
    async close() {
      await proxy.close()
      await forge.close()
      expect(forge.violations).toEqual([])
    },
  }
})

describe('options', () => {
  const parse = (options: object) => gitlab.config.safeParse({ repo: 'group/img', token: 't', ...options })

  it.each([
    [{ repo: 'img' }, /"group\/project" or the numeric ID/],
    [{ apiUrl: 'https://git.example.com' }, /must end with \/api\/v4/],
  ])('%j is refused', (options, message) => {
    expect(parse(options).error?.issues[0]?.message).toMatch(message)
  })

  it('a number of a project needs a "urlPrefix"', () => {
    const validate = (options: object) =>
      gitlab.validate?.(gitlab.config.parse({ repo: '42', token: 't', ...options }))
    expect(validate({})).toMatch(/Set "urlPrefix"/)
    expect(validate({ urlPrefix: 'https://img.example.com' })).toBeUndefined()
  })
})
