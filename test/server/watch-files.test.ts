import { appendFile, mkdir, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { fingerprint, watchFiles } from '../../src/server/watch-files.ts'
import { makeDirectory } from '../helpers/directory.ts'
import { eventually } from '../helpers/eventually.ts'

/** Watches files and keeps the fingerprint that each call found. */
function watching(...files: string[]) {
  const seen: string[] = []
  const watch = watchFiles(files, fingerprint(files), () => seen.push(fingerprint(files)))
  onTestFinished(() => watch.follow([]))
  return {
    seen,
    called: (times: number) => eventually(() => expect(seen).toHaveLength(times)),
  }
}

describe('files are watched', () => {
  it('through an editor that puts a new one in the place of the old one, again and again', async () => {
    const cwd = await makeDirectory()
    const file = join(cwd, 'a.json')
    await writeFile(file, '0')
    const { called } = watching(file)
    for (const text of ['1', '2']) {
      await writeFile(join(cwd, '.a.json.swp'), text)
      await rename(join(cwd, '.a.json.swp'), file)
      await called(Number(text))
    }
  })

  it('and taken when they stand still, not while they are written', async () => {
    const cwd = await makeDirectory()
    const file = join(cwd, 'a.json')
    await writeFile(file, '')
    const { seen, called } = watching(file)
    for (let i = 0; i < 300; i++) await appendFile(file, 'x')
    await called(1)
    expect(seen).toEqual([fingerprint([file])])
  })

  it('through links on the way to them, as Kubernetes swaps them', async () => {
    const cwd = await makeDirectory()
    const publish = async (version: number) => {
      await mkdir(join(cwd, `..${version}`))
      await writeFile(join(cwd, `..${version}`, 'a.json'), String(version))
      await symlink(`..${version}`, join(cwd, '..data_tmp'))
      await rename(join(cwd, '..data_tmp'), join(cwd, '..data'))
      await rm(join(cwd, `..${version - 1}`), { recursive: true, force: true })
    }
    await publish(1)
    await symlink('..data/a.json', join(cwd, 'a.json'))
    const { called } = watching(join(cwd, 'a.json'))
    await publish(2)
    await called(1)
    await publish(3)
    await called(2)
  })

  it('when their directory goes and another one comes', async () => {
    const cwd = await makeDirectory()
    await mkdir(join(cwd, 'conf/inner'), { recursive: true })
    await writeFile(join(cwd, 'conf/inner/a.json'), '1')
    const { called } = watching(join(cwd, 'conf/inner/a.json'))
    await rm(join(cwd, 'conf'), { recursive: true })
    await called(1)
    await mkdir(join(cwd, 'conf.new/inner'), { recursive: true })
    await writeFile(join(cwd, 'conf.new/inner/a.json'), '2')
    await rename(join(cwd, 'conf.new'), join(cwd, 'conf'))
    await called(2)
  })

  it('from the content on that is known, whatever happened meanwhile', async () => {
    const file = join(await makeDirectory(), 'a.json')
    await writeFile(file, 'before')
    const known = fingerprint([file])
    await writeFile(file, 'after')
    let calls = 0
    const watch = watchFiles([file], known, () => calls++)
    onTestFinished(() => watch.follow([]))
    await eventually(() => expect(calls).toBe(1))
  })

  it('but not what lies beside them, and not the same content written once more', async () => {
    const cwd = await makeDirectory()
    const [file, beside] = [join(cwd, 'a.json'), join(cwd, 'b.json')]
    await writeFile(file, '1')
    const first = watching(file)
    const both = watching(file, beside)
    await writeFile(file, '1')
    await writeFile(beside, '1')
    await both.called(1)
    expect(first.seen).toEqual([])
  })
})
