import { describe, expect, it } from 'vitest'
import { github, publicUrlOf } from '../../src/providers/github.ts'
import { contractAt, describeProvider } from '../helpers/provider-contract.ts'
import { openTarget } from '../helpers/target.ts'
import { startEmulate } from '../servers/emulate.ts'

const TOKEN = 'ghp_0123456789'

describeProvider('github', async () => {
  const emulate = await startEmulate()
  const { token, wrongToken } = emulate
  const repo = 'octo/hidden' // of what everybody may read, emulate tells nobody that they may not write
  const openAt = (port: number, others = {}) =>
    openTarget(github, { apiUrl: `http://127.0.0.1:${port}`, token, repo, ...others })
  return contractAt(emulate, openAt, {
    bad: { token: wrongToken },
    secrets: [token, wrongToken],
    /** As a visitor with an account: emulate has no pages for others. */
    async fetch({ url }) {
      const reply = await fetch(url, { headers: { Authorization: `Bearer ${token}` } })
      if (!reply.ok) throw new Error(`${reply.status} for ${url}`)
      return Buffer.from(await reply.arrayBuffer())
    },
  })
})

describe('addresses for visitors', () => {
  const at = (options: object) =>
    publicUrlOf(github.config.parse({ repo: 'octo/img', token: TOKEN, ...options }))

  it.each([
    [{}, 'https://raw.githubusercontent.com/octo/img/main'],
    [{ branch: 'feature/x' }, 'https://raw.githubusercontent.com/octo/img/feature/x'],
    [{ apiUrl: 'https://api.github.com/' }, 'https://raw.githubusercontent.com/octo/img/main'],
    [{ apiUrl: 'https://git.example.com/api/v3' }, 'https://git.example.com/octo/img/raw/main'],
    [{ apiUrl: 'https://api.octo.ghe.com' }, 'https://octo.ghe.com/octo/img/raw/main'],
  ])('%j: %s', (options, url) => {
    expect(at(options)).toBe(url)
  })
})
