import { expect, it } from 'vitest'
import { piclist } from '../../../src/providers/piclist.ts'
import { makePicture } from '../../helpers/picture.ts'
import { open, put } from '../../helpers/target.ts'
import { startPicGo } from '../../servers/picgo.ts'

const KEY = 'the key of the other server'

it('piclist stores by PicGo itself, where it is told to', async context => {
  const saved = { nowhere: { _configName: 'Default' }, elsewhere: { _configName: 'Second' } }
  const url = await startPicGo(context, {
    picBed: { uploader: 'nowhere', ...saved },
    settings: { server: { secret: KEY } },
  })
  const store = async (options: object) =>
    put(await open(piclist, { url, serverKey: KEY, ...options }), 'a b.png', makePicture())
  expect(await store({})).toEqual({ url: 'http://img.example/a%20b.png' })
  expect(await store({ picbed: 'elsewhere' })).toEqual({ url: 'http://other.example/a%20b.png' })
  const named = store({ picbed: 'elsewhere', configName: 'Second' })
  expect(await named).toEqual({ url: 'http://other.example/a%20b.png' })
  await expect(store({ picbed: 'none' })).rejects.toThrow(/returned 400: .*"none"/)
  await expect(store({ serverKey: 'a wrong key' })).rejects.toThrow('returned 401')
})
