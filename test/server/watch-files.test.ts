import { appendFile, mkdir, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { fingerprint, watchFiles } from '../../src/server/watch-files.ts'
import { makeDirectory } from '../helpers/directory.ts'

beforeEach(() => void vi.useFakeTimers({ toFake: ['setInterval'] }))
afterEach(() => void vi.useRealTimers())

/** Time for one look at the files. A change is taken at the second one. */
const look = () => vi.advanceTimersByTime(1000)

/** Watches files and keeps the fingerprint that each call found. */
function watching(...files: string[]) {
  const seen: string[] = []
  watchFiles(files, fingerprint(files), () => seen.push(fingerprint(files)))
  return {
    seen,
    called(times: number) {
      look()
      look()
      expect(seen).toHaveLength(times)
    },
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
      called(Number(text))
    }
  })

  it('and taken when they stand still, not while they are written', async () => {
    const file = join(await makeDirectory(), 'a.json')
    await writeFile(file, '')
    const { seen, called } = watching(file)
    for (let i = 0; i < 5; i++) {
      await appendFile(file, 'x')
      look()
    }
    expect(seen).toEqual([])
    called(1)
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
    for (const version of [2, 3]) {
      await publish(version)
      called(version - 1)
    }
  })

  it('when their directory goes and another one comes', async () => {
    const cwd = await makeDirectory()
    const write = async (folder: string, text: string) => {
      await mkdir(join(cwd, folder, 'inner'), { recursive: true })
      await writeFile(join(cwd, folder, 'inner/a.json'), text)
    }
    await write('conf', '1')
    const { called } = watching(join(cwd, 'conf/inner/a.json'))
    await rm(join(cwd, 'conf'), { recursive: true })
    called(1)
    await write('conf.new', '2')
    await rename(join(cwd, 'conf.new'), join(cwd, 'conf'))
    called(2)
  })

  it('from the content on that is known, whatever happened meanwhile', async () => {
    const file = join(await makeDirectory(), 'a.json')
    await writeFile(file, 'before')
    const known = fingerprint([file])
    await writeFile(file, 'after')
    const onChange = vi.fn()
    watchFiles([file], known, onChange)
    look()
    look()
    expect(onChange).toHaveBeenCalledOnce()
  })

  it('but not what lies beside them, and not the same content written once more', async () => {
    const cwd = await makeDirectory()
    const [file, beside] = [join(cwd, 'a.json'), join(cwd, 'b.json')]
    await writeFile(file, '1')
    const first = watching(file)
    const both = watching(file, beside)
    await writeFile(file, '1')
    await writeFile(beside, '1')
    both.called(1)
    expect(first.seen).toEqual([])
  })
})
