import { execFileSync } from 'node:child_process'
import { mkdir, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeEach, expect, it } from 'vitest'
import { ForeignName } from '../../src/files/foreign-name.ts'
import { makeDirectory } from '../helpers/directory.ts'
import { swap } from '../helpers/swap.ts'

let root: string
beforeEach(async () => {
  root = await makeDirectory()
  for (const name of [
    'here/a.png',
    'here/.env',
    'here/.shots/b.png',
    'here/sub/.npmrc',
    'secret',
    '.more/c.png',
  ]) {
    await mkdir(join(root, name, '..'), { recursive: true })
    await writeFile(join(root, name), name)
  }
  await symlink('../secret', join(root, 'here/link.png'))
  await symlink('..', join(root, 'here/up'))
  await symlink('.env', join(root, 'here/env.png'))
  await symlink('a.png', join(root, 'here/same.png'))
})

const nameOf = (name: string, ...more: string[]) =>
  new ForeignName(name.replace('/ROOT', root), {
    folders: [join(root, 'here'), ...more.map(one => join(root, one))],
    advice: 'Ask',
  })

const OUTSIDE = /^it is outside of the allowed folders \(.*\)\. Ask$/

it.each<[string, RegExp, string?]>([
  ['../secret', OUTSIDE],
  ['/ROOT/secret', OUTSIDE],
  ['/etc/passwd', OUTSIDE],
  ['../here-too/a.png', OUTSIDE],
  ['../absent', OUTSIDE],
  ['up/absent', OUTSIDE],
  ['link.png', OUTSIDE],
  ['up/secret', OUTSIDE],
  ['.env', /^"\.env" begins with a dot\. Ask$/],
  ['.shots/b.png', /^"\.shots" begins with a dot/],
  ['sub/../sub/.npmrc', /^"\.npmrc" begins with a dot/],
  ['env.png', /^it is a symlink to \.env, which begins with a dot/],
  ['file:///ROOT/here/a.png', /^it is a URL/],
  ['FILE:a.png', /^it is a URL/],
  ['http://127.0.0.1/a.png', /^it is a URL/],
  ['sub', /^it is a folder$/, 'source_failed'],
  ['absent', /^the file does not exist$/, 'source_failed'],
])('attack: a name that others chose is %s', async (name, message, code = 'source_forbidden') => {
  await expect(nameOf(name).open()).rejects.toMatchObject({ code, message: expect.stringMatching(message) })
})

it('attack: a name that others chose is a FIFO, and opening it would wait forever', async () => {
  execFileSync('mkfifo', [join(root, 'here/pipe')])
  await expect(nameOf('pipe').open()).rejects.toThrow('it is not a regular file')
})

it.each(['a.png', '/ROOT/here/a.png', 'same.png', '../.more/c.png'])(
  'a file below a folder opens: %s',
  async name => {
    const file = await nameOf(name, '.more').open()
    expect(file.real).toMatch(/here\/a\.png$|\.more\/c\.png$/)
    await file.close()
  },
)

it('attack: a name comes to lead elsewhere while it is opened', async () => {
  await swap(join(root, 'here/a.png'), join(root, 'here/.env'))
  for (let turn = 0; turn < 200; turn++) {
    const file = await nameOf('a.png')
      .open()
      .catch(() => undefined)
    const bytes = await file?.handle.readFile('utf8')
    await file?.close()
    expect(bytes ?? 'here/a.png').toBe('here/a.png')
  }
})
