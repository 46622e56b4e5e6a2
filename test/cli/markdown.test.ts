import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, link, mkdir, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { describe, expect, it } from 'vitest'
import { lookAt } from '../../src/client/notes/find-image.ts'
import { findRepository } from '../../src/client/notes/vault.ts'
import { makeDirectory } from '../helpers/directory.ts'
import { makePicture } from '../helpers/picture.ts'
import { BIN, environmentIn } from '../helpers/spawn-server.ts'
import { startStubBucket } from '../helpers/stub-bucket.ts'
import { serve } from '../uploader/sources/servers.ts'
import { type CliResult, runCli } from './run-cli.ts'

const PREFIX = 'https://img.example'
const CONFIG = {
  providers: { local: { Default: { directory: 'stored', urlPrefix: PREFIX } } },
  keyTemplate: '{filename}{extname}',
}

/** A folder with a configuration and these files; a picture where no text is given. */
async function makeNotes(files: Record<string, string | Buffer | undefined>): Promise<string> {
  const cwd = await makeDirectory()
  await writeFile(join(cwd, 'upload-server.json'), JSON.stringify(CONFIG))
  for (const [name, content] of Object.entries(files)) {
    await mkdir(dirname(join(cwd, name)), { recursive: true })
    await writeFile(join(cwd, name), content ?? makePicture())
  }
  return cwd
}

const markdown = (cwd: string, ...args: string[]): Promise<CliResult> =>
  runCli(['markdown', ...args], { cwd })
const read = (cwd: string, name: string) => readFile(join(cwd, name), 'utf8')
const stored = (cwd: string) => readdir(join(cwd, 'stored')).catch(() => [])

/** A host with a picture at every path but `/gone.png`, where it answers with a page and 200. */
async function startHost(): Promise<string> {
  const { port } = await serve((req, res) =>
    res.end(req.url === '/gone.png' ? '<!doctype html><title>Gone</title>' : makePicture()),
  )
  return `127.0.0.1:${port}`
}

describe('a note of a stranger', () => {
  it('that shows a secret file has nothing of it uploaded', async () => {
    const cwd = await makeNotes({ 'secret/id_rsa': 'PRIVATE KEY', 'secret/key.png': 'PRIVATE KEY' })
    await symlink('secret/id_rsa', join(cwd, 'linked.png'))
    await link(join(cwd, 'secret/id_rsa'), join(cwd, 'hard.png'))
    const names = 'secret/id_rsa secret/key.png linked.png hard.png /proc/self/environ /etc/passwd'.split(' ')
    const note = `${names.map(name => `![](${name})`).join('\n')}\n![[key.png]]\n`
    await writeFile(join(cwd, 'note.md'), note)
    const { code, stderr } = await markdown(cwd, 'note.md')
    expect(code).toBe(1)
    expect(stderr.match(/it is not an image/g)).toHaveLength(5)
    expect(stderr.match(/it is outside of the allowed folders/g)).toHaveLength(2)
    expect(await stored(cwd)).toEqual([])
    expect(await read(cwd, 'note.md')).toBe(note)
  })

  it('makes no program of root out of the note or its backup', async () => {
    const cwd = await makeNotes({ 'note.md': '#!/bin/sh\n![](a.png)\n', 'a.png': undefined })
    await chmod(join(cwd, 'note.md'), 0o6777)
    expect((await markdown(cwd, 'note.md')).code).toBe(0)
    const modes = ['note.md', 'note.md.bak'].map(async name => (await stat(join(cwd, name))).mode & 0o7777)
    expect(await Promise.all(modes)).toEqual([0o777, 0o777])
  })

  it('moves the cursor of no terminal', async () => {
    const cwd = await makeNotes({ 'note.md': '![](<\u001b[2Ja.png>)' })
    const { stderr } = await markdown(cwd, 'note.md')
    expect(stderr).toContain('note.md:1: ?[2Ja.png: the file does not exist')
  })
})

describe('--from', () => {
  it('moves the pictures of a host and nothing else', async () => {
    const [host, other] = [await startHost(), await startHost()]
    const rest = `![](http://${other}/b.png) ![](local.png) ![](http://${host}/gone.png)`
    const cwd = await makeNotes({
      'note.md': `![](http://${host}/a.png?x=1&y=2) <img src="http://${host}/c"> ${rest}`,
      'local.png': undefined,
    })
    const { code, stderr } = await markdown(cwd, '--from', host, 'note.md')
    expect(code).toBe(1)
    expect(stderr).toContain(
      `note.md:1: http://${host}/gone.png: "${host}/gone.png" returned a web page instead`,
    )
    expect(await read(cwd, 'note.md')).toBe(`![](${PREFIX}/a.png) <img src="${PREFIX}/c.png"> ${rest}`)
    const again = await markdown(cwd, '--from', '127.0.0.1', 'note.md')
    expect(again.stdout).toBe('note.md: 1 link\n')
  })

  it('follows a redirect to a private address only if the user named it', async () => {
    const inner = await startHost()
    const { port } = await serve((_, res) => res.writeHead(302, { Location: `http://${inner}/a.png` }).end())
    const host = `127.0.0.1:${port}`
    const cwd = await makeNotes({ 'note.md': `![](http://${host}/a.png)` })
    const { code, stderr } = await markdown(cwd, '--from', host, 'note.md')
    expect(code).toBe(1)
    expect(stderr).toContain(`"${inner}/a.png", to which "${host}/a.png" redirects, was not fetched`)
    expect(await stored(cwd)).toEqual([])
    expect((await markdown(cwd, '--from', host, '--from', inner, 'note.md')).code).toBe(0)
  })

  it('stops where the destination hands the pictures out at the same host', async () => {
    const host = await startHost()
    const cwd = await makeNotes({ 'note.md': `![](http://${host}/a.png)` })
    const config = { providers: { local: { Default: { directory: 'stored', urlPrefix: `http://${host}` } } } }
    await writeFile(join(cwd, 'upload-server.json'), JSON.stringify(config))
    const { code, stderr } = await markdown(cwd, '--from', host, 'note.md')
    expect({ code, stderr }).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(`its files on ${host}, too`),
    })
    expect(await read(cwd, 'note.md')).toBe(`![](http://${host}/a.png)`)
  })
})

describe('what is stored', () => {
  it('by the built program gets its link also when Ctrl-C cuts the rest short', async () => {
    const bucket = await startStubBucket()
    const names = [1, 2, 3, 4, 5].map(n => `${n}.png`)
    const pictures = names.map(name => [name, Buffer.concat([makePicture(), Buffer.from(name)])])
    const linesOf = (base: string, some: readonly string[]) =>
      some.map(name => `![](${base}${name})\n`).join('')
    const cwd = await makeNotes({ 'note.md': linesOf('', names), ...Object.fromEntries(pictures) })
    const config = { ...CONFIG, providers: { s3: { Default: bucket.options } } }
    await writeFile(join(cwd, 'upload-server.json'), JSON.stringify(config))
    bucket.hold()
    const child = spawn(process.execPath, [BIN, 'markdown', 'note.md'], { cwd, env: environmentIn(cwd) })
    const errors = text(child.stderr)
    // Four go out at a time.
    await expect.poll(() => bucket.puts, { timeout: 20_000 }).toHaveLength(4)
    bucket.letGo()
    bucket.hold()
    await expect.poll(() => bucket.puts, { timeout: 20_000 }).toHaveLength(5)
    child.kill('SIGINT')
    const [code] = await once(child, 'exit')
    expect({ code, errors: await errors }).toEqual({
      code: 130,
      errors: expect.stringContaining('note.md:5: 5.png: the upload was interrupted'),
    })
    const stored = linesOf(`${bucket.options['urlPrefix']}/`, names.slice(0, 4))
    expect(await read(cwd, 'note.md')).toBe(stored + linesOf('', ['5.png']))
  })
})

describe('attack: a note names pictures elsewhere on the disk, to have them published', () => {
  const NOTE =
    '![](/FOLDER/private.png) ![](../FOLDER/private.png) ![](link.png) ![](.hidden/a.png) ![](in/a.png)'

  async function makeTheft() {
    const cwd = await makeNotes({
      'notes/in/a.png': undefined,
      'notes/.hidden/a.png': undefined,
      'elsewhere/private.png': undefined,
    })
    const note = NOTE.replace('/FOLDER', join(cwd, 'elsewhere')).replace('FOLDER', 'elsewhere')
    await writeFile(join(cwd, 'notes/note.md'), note)
    await symlink('../elsewhere/private.png', join(cwd, 'notes/link.png'))
    return cwd
  }

  it('they are not uploaded, and the option that would allow it is named', async () => {
    const cwd = await makeTheft()
    const { code, stderr } = await markdown(cwd, 'notes')
    expect(code).toBe(1)
    expect(await stored(cwd)).toEqual(['a.png'])
    const outside = `it is outside of the allowed folders (${join(cwd, 'notes')}). If you trust the note, add --root `
    expect(stderr.split('\n').slice(0, 4)).toEqual([
      `notes/note.md:1: ${join(cwd, 'elsewhere/private.png')}: ${outside}${join(cwd, 'elsewhere')}`,
      `notes/note.md:1: ../elsewhere/private.png: ${outside}${join(cwd, 'elsewhere')}`,
      `notes/note.md:1: link.png: ${outside}${join(cwd, 'elsewhere')}`,
      `notes/note.md:1: .hidden/a.png: ".hidden" begins with a dot. If you trust the note, add --root ${join(cwd, 'notes/.hidden')}`,
    ])
  })

  it('--root allows a folder, a repository its files, but none that holds the home of the user', async () => {
    const cwd = await makeTheft()
    const roots = ['--root', 'elsewhere', '--root', 'notes/.hidden']
    expect(await markdown(cwd, '-n', ...roots, 'notes')).toMatchObject({ code: 0 })
    await mkdir(join(cwd, '.git'))
    expect((await markdown(cwd, '-n', 'notes')).stderr).toMatch(
      /^notes\/note\.md:1: \.hidden\/a\.png: .*\n5 links|4 links/,
    )
    expect(await findRepository(join(cwd, 'notes'), join(cwd, 'home/me'))).toBeUndefined()
    expect(await findRepository(join(cwd, 'notes'), '/elsewhere')).toBe(cwd)
  })

  it('a file that is exchanged after it was looked at is looked at again', async () => {
    const cwd = await makeTheft()
    const found = await lookAt(join(cwd, 'notes/in/a.png'), [join(cwd, 'notes')])
    if (!found.image) throw new Error(found.reason)
    await rm(join(cwd, 'notes/in/a.png'))
    await symlink('../../elsewhere/private.png', join(cwd, 'notes/in/a.png'))
    await expect(found.image.open?.()).rejects.toThrow('it is outside of the allowed folders')
  })
})

it('attack: a note, its folder or its backup that is a symlink of a cloned folder is not written through', async () => {
  const cwd = await makeNotes({ 'note.md': '![](a.png)', 'a.png': undefined })
  const home = await makeNotes({ 'profile.md': '![](a.png)', 'a.png': undefined, backup: 'mine' })
  await symlink(join(home, 'profile.md'), join(cwd, 'README.md'))
  await symlink(home, join(cwd, 'notes'))
  await symlink(join(home, 'backup'), join(cwd, 'note.md.bak'))
  const { code, stderr } = await markdown(cwd, 'README.md', 'notes', 'notes/profile.md', 'note.md')
  expect(code).toBe(1)
  expect(stderr.match(/it is a symlink that leads out of/g)).toHaveLength(3)
  expect([await read(home, 'profile.md'), await read(home, 'backup')]).toEqual(['![](a.png)', 'mine'])
  expect(await read(cwd, 'note.md.2.bak')).toBe('![](a.png)')
})
