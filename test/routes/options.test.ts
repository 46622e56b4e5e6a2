import { describe, expect, it } from 'vitest'
import { fingerprintedOptions, OPTIONS, readOptions } from '../../src/routes/options.ts'
import { ask } from '../helpers/ask.ts'
import { startApp } from '../helpers/start-app.ts'

const read = (query: string) => readOptions(new URLSearchParams(query))

describe('the options of a request', () => {
  it('are those of the table, read as it says', () => {
    expect(read('filename=a%20b.png&format=WebP&width=65535&stripMetadata=true&unknown=1')).toEqual({
      filename: 'a b.png',
      format: 'webp',
      width: 65_535,
      stripMetadata: true,
    })
  })

  it('count as absent when they are empty', () => {
    expect(read('picbed=&format=&finalizationId=')).toEqual({})
    expect(read('')).toEqual({})
  })

  it('come under other names, too, and their own goes first', () => {
    expect(read('uploader=s3')).toEqual({ picbed: 's3' })
    expect(read('uploader=s3&picbed=')).toEqual({ picbed: 's3' })
    expect(read('uploader=s3&picbed=local')).toEqual({ picbed: 'local' })
  })

  it.each([
    ['destination=s3/blog', { picbed: 's3', configName: 'blog' }],
    ['destination=s3', { picbed: 's3' }],
    ['destination=aws-s3/a/b', { picbed: 's3', configName: 'a/b' }],
    ['destination=s3/blog&picbed=aws-s3&configName=blog', { picbed: 's3', configName: 'blog' }],
    ['destination=s3&configName=blog', { picbed: 's3', configName: 'blog' }],
    ['destination=&picbed=local&destination=', { picbed: 'local' }],
  ])('choose the destination in either spelling: %s', (query, expected) => {
    expect(read(query)).toEqual(expected)
  })

  it.each([
    ['destination=s3/blog&picbed=local', 'Destination "s3/blog" contradicts picbed "local".'],
    ['destination=s3/blog&uploader=local', 'Destination "s3/blog" contradicts picbed "local".'],
    ['destination=s3/blog&configName=b', 'Destination "s3/blog" contradicts configName "b".'],
    ['destination=s3/blog&destination=s3/blog', '"destination" was sent more than once.'],
    ['destination=/blog', '"destination" must be "provider" or "provider/configName".'],
    ['destination=s3/', '"destination" must be "provider" or "provider/configName".'],
  ])('refuse a destination that is unclear: %s', (query, message) => {
    expect(() => read(query)).toThrow(
      expect.objectContaining({ code: 'invalid_request', message: expect.stringContaining(message) }),
    )
  })

  it.each(['format=bmp', 'quality=101', 'quality=1.5', 'width=0', 'height=65536', 'stripMetadata=yes'])(
    'that have no such value are named: %s',
    query => {
      const [name] = query.split('=')
      expect(() => read(query)).toThrow(`"${name}" must be `)
    },
  )

  it('tell requests apart whatever their order, and by what changes the files alone', () => {
    const [one, two] = ['width=5&format=png&picbed=s3', 'filename=a&format=png&width=5'].map(query =>
      JSON.stringify(fingerprintedOptions(read(query))),
    )
    expect(one).toBe('{"format":"png","width":5}')
    expect(two).toBe(one)
  })

  it('stand in the API description, all of them', async () => {
    const app = await startApp()
    const { paths } = JSON.parse((await ask(app.url, 'GET', '/openapi.json')).body)
    for (const operation of [paths['/upload'].post, paths['/upload'].put, paths['/upload/{name}'].put]) {
      const described = operation.parameters.filter((one: { in: string }) => one.in === 'query')
      expect(described.map((one: { name: string }) => one.name)).toEqual(Object.keys(OPTIONS))
    }
  })
})
