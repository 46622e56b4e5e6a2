import { describe, expect, it } from 'vitest'
import { gitee } from '../../src/providers/gitee.ts'
import { describeForge } from '../helpers/forges.ts'

describeForge('gitee')

describe('options of the plugins for PicGo that are called "gitee"', () => {
  const translate = (old: Record<string, unknown>) => gitee.fromPicGo?.(old) ?? expect.fail()

  it('gitee-uploader', () => {
    const old = {
      repo: 'octo/img',
      branch: '',
      token: 't',
      path: 'img',
      customPath: 'default',
      customUrl: '',
    }
    expect(translate(old).options).toEqual({
      ...{ repo: 'octo/img', branch: 'master', token: 't', urlPrefix: undefined },
      keyTemplate: 'img/{filename}-{sha256-8}{extname}',
    })
  })

  it.each([
    ['year', 'img/{Y}/'],
    ['yearMonth', 'img/{Y}/{m}/'],
    ['yearQuarter', 'img/{Y}/'],
    ['default', 'img/$customPath/'],
  ])('gitee-uploader, customPath %s', (customPath, folder) => {
    const { options, notes } = translate({ repo: 'o/i', token: 't', path: 'img/$customPath', customPath })
    expect(options['keyTemplate']).toBe(`${folder}{filename}-{sha256-8}{extname}`)
    expect(notes.join('\n').includes('seasons')).toBe(customPath === 'yearQuarter')
  })

  it.each([
    [undefined, undefined],
    ['https://img.example.com/', 'https://img.example.com/octo/img/raw/master'],
  ])('gitee, which has an owner, customUrl %s', (customUrl, urlPrefix) => {
    const old = { owner: 'octo', repo: 'img', token: 't', path: 'a', message: 'picgo commit', customUrl }
    const { options } = translate(old)
    expect(options).toEqual({
      ...{ repo: 'octo/img', branch: 'master', token: 't', urlPrefix, commitMessage: 'picgo commit' },
      keyTemplate: 'a/{filename}-{sha256-8}{extname}',
    })
    const { keyTemplate: _, ...own } = options
    expect(gitee.config.safeParse(own).error).toBeUndefined()
  })
})
