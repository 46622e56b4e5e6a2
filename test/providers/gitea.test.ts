import { expect, it } from 'vitest'
import { gitea } from '../../src/providers/gitea.ts'

it.each([
  [{}, /./],
  [{ apiUrl: 'https://codeberg.org' }, /must end with \/api\/v1/],
])('the address of the API is required: %j', (options, message) => {
  const { error } = gitea.config.safeParse({ repo: 'octo/img', token: 't', ...options })
  expect(error?.issues[0]?.message).toMatch(message)
})
