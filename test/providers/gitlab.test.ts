import { describe, expect, it } from 'vitest'
import { gitlab } from '../../src/providers/gitlab.ts'
import { describeForge } from '../helpers/forges.ts'

describeForge('gitlab')

describe('options', () => {
  const parse = (options: object) => gitlab.config.safeParse({ repo: 'group/img', token: 't', ...options })

  it.each([{}, { repo: 'group/sub/sub/img' }, { apiUrl: 'https://git.example.com/gitlab/api/v4/' }])(
    '%j is taken',
    options => {
      expect(parse(options).error).toBeUndefined()
    },
  )

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
