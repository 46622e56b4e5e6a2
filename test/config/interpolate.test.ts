import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { interpolate } from '../../src/config/interpolate.ts'
import { makeDirectory } from '../helpers/directory.ts'

const env = { NAME: 'value', EMPTY: '', _a1: 'under', lower: 'case', NESTED: '${NAME}' }

function fill(value: unknown, base = '/') {
  const problems: string[] = []
  const filled = interpolate(value, env, base, (path, message) => problems.push(`${path}: ${message}`))
  return { ...filled, problems }
}

describe('interpolate', () => {
  it.each([
    ['${NAME}', 'value'],
    ['a ${NAME} b ${NAME}', 'a value b value'],
    ['${_a1}${lower}', 'undercase'],
    ['${EMPTY}', ''],
    ['${NESTED}', '${NAME}'],
    ['$${NAME}', '${NAME}'],
    ['$$${NAME}', '$${NAME}'],
    ['$${${NAME}}', '${value}'],
    ['$${', '${'],
    ['$NAME $ $$ {NAME} $ {NAME}', '$NAME $ $$ {NAME} $ {NAME}'],
    ['{Y}/{m}', '{Y}/{m}'],
  ])('makes %j into %j', (text, filled) => {
    expect(fill(text)).toEqual({ value: filled, files: [], problems: [] })
  })

  it('fills strings at any depth, no names and nothing else', () => {
    const value = { a: { '${NAME}': ['${NAME}', 1, null, true, undefined] }, b: 'x' }
    expect(fill(value).value).toEqual({ a: { '${NAME}': ['value', 1, null, true, undefined] }, b: 'x' })
  })

  it('names every variable that is not set, with the option it stands in', () => {
    // Every object has toString.
    const value = { server: { key: '${MISSING}' }, auth: { keys: [{}, { key: 'x${toString}' }] } }
    expect(fill(value).problems).toEqual([
      'server.key: the environment variable MISSING is not set',
      'auth.keys[1].key: the environment variable toString is not set',
    ])
  })

  it.each(['${}', '${A-B}', '${NAME:-default}', '${1A}', '${ NAME }', '${NAME', 'pass${word', '${file:/x'])(
    'refuses %j without repeating it, since it may be part of a password',
    text => {
      const { value, problems } = fill({ key: text })
      expect(problems).toEqual([
        'key: contains "${" without a valid variable. Write ${NAME} or ${file:/path}, or $${ for a literal "${"',
      ])
      expect(value).toEqual({ key: text })
    },
  )

  it('takes the text of a file without its final line break, and tells which file', async () => {
    const base = await makeDirectory()
    await writeFile(join(base, 'key'), 'secret \n\r\n')
    await writeFile(join(base, 'plain'), 'no ${NAME} here')
    const { value, files, problems } = fill(
      { a: '${file:key}', b: `x\${file:${join(base, 'plain')}}x`, c: '${file:./key}' },
      base,
    )
    expect(value).toEqual({ a: 'secret \n', b: 'xno ${NAME} herex', c: 'secret \n' })
    expect(files).toEqual([join(base, 'key'), join(base, 'plain'), join(base, 'key')])
    expect(problems).toEqual([])
  })

  it('says which file cannot be read and why', async () => {
    const base = await makeDirectory()
    await mkdir(join(base, 'folder'))
    expect(fill({ a: '${file:absent}', b: '${file:folder}', c: '${file:}' }, base).problems).toEqual([
      'a: could not read the file "absent" (ENOENT)',
      'b: could not read the file "folder" (EISDIR)',
      'c: could not read the file "" (EISDIR)',
    ])
  })
})
