import { expect, it, onTestFinished } from 'vitest'
import { piclist } from '../../../src/providers/piclist.ts'
import { openHost } from '../../helpers/http-exchange.ts'
import { makePicture } from '../../helpers/picture.ts'
import { objectOf } from '../../helpers/provider-contract.ts'
import { startPicGo } from '../../servers/picgo.ts'

const KEY = 'the key of the other server'

it('piclist stores by PicGo itself, where it is told to', async context => {
  const saved = { nowhere: { _configName: 'Default' }, elsewhere: { _configName: 'Second' } }
  const url = await startPicGo(context, {
    picBed: { uploader: 'nowhere', ...saved },
    settings: { server: { secret: KEY } },
  })
  const put = async (options: object) => {
    const target = await openHost(piclist, { url, serverKey: KEY, ...options })
    onTestFinished(() => target.close?.())
    return target.put(objectOf('a b.png', makePicture()), new AbortController().signal)
  }
  expect(await put({})).toEqual({ url: 'http://img.example/a%20b.png' })
  expect(await put({ picbed: 'elsewhere' })).toEqual({ url: 'http://other.example/a%20b.png' })
  const named = put({ picbed: 'elsewhere', configName: 'Second' })
  expect(await named).toEqual({ url: 'http://other.example/a%20b.png' })
  await expect(put({ picbed: 'none' })).rejects.toThrow(/returned 400: .*"none"/)
  await expect(put({ serverKey: 'a wrong key' })).rejects.toThrow('returned 401')
})
