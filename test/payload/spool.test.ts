import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdir, readdir, realpath, rm, stat, utimes, writeFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { createSpool, sweepSpool } from '../../src/payload/spool.ts'
import { makeDirectory } from '../helpers/directory.ts'

const modeOf = async (path: string) => (await stat(path)).mode & 0o777

describe('a spool', () => {
  it('makes nothing before it is used, and nothing when it is closed unused', async () => {
    const directory = join(await makeDirectory(), 'a', 'b')
    const spool = createSpool(directory)
    await spool.close()
    expect(existsSync(dirname(directory))).toBe(false)
  })

  it('gives private files under names of its own', async () => {
    const directory = join(await makeDirectory(), 'tmp')
    const spool = createSpool(directory)
    const files = await Promise.all(Array.from({ length: 20 }, () => spool.create()))
    expect(new Set(files.map(file => file.path)).size).toBe(20)
    expect(dirname(spool.directory)).toBe(directory)
    expect(await modeOf(spool.directory)).toBe(0o700)
    for (const { path, file } of files) {
      expect(await realpath(dirname(path))).toBe(await realpath(spool.directory))
      expect(await modeOf(path)).toBe(0o600)
      await file.write('x')
      await file.close()
    }
    await spool.close()
    expect(await readdir(directory)).toEqual([])
  })

  it('keeps two spools in one directory apart', async () => {
    const directory = await makeDirectory()
    const [one, two] = [createSpool(directory), createSpool(directory)]
    const { path, file } = await one.create()
    await file.close()
    await (await two.create()).file.close()
    await two.close()
    expect(existsSync(path)).toBe(true)
    await one.close()
    expect(await readdir(directory)).toEqual([])
  })

  it('goes on when somebody removes its directory', async () => {
    const spool = createSpool(await makeDirectory())
    await (await spool.create()).file.close()
    await rm(spool.directory, { recursive: true })
    const { path, file } = await spool.create()
    await file.close()
    expect(existsSync(path)).toBe(true)
    expect(await modeOf(spool.directory)).toBe(0o700)
    await spool.close()
  })

  it('tries again when its directory could not be made at first', async () => {
    const directory = await makeDirectory()
    await writeFile(join(directory, 'tmp'), 'in the way')
    const spool = createSpool(join(directory, 'tmp'))
    await expect(spool.create()).rejects.toMatchObject({ code: expect.stringMatching(/ENOTDIR|EEXIST/) })
    await rm(join(directory, 'tmp'))
    const { file } = await spool.create()
    await file.close()
    await spool.close()
  })
})

describe('sweepSpool', () => {
  /** A process of this machine that has ended. */
  async function endedPid(): Promise<number> {
    const child = spawn(process.execPath, ['-e', ''])
    await once(child, 'exit')
    return child.pid ?? 0
  }

  const here = hostname().replace(/[^A-Za-z0-9-]/g, '_')

  async function makeSpools(names: string[], agedHours = 0): Promise<string> {
    const directory = await makeDirectory()
    for (const name of names) {
      await mkdir(join(directory, name))
      await writeFile(join(directory, name, '1'), 'x')
      const then = new Date(Date.now() - agedHours * 3_600_000)
      await utimes(join(directory, name), then, then)
    }
    return directory
  }

  it('removes what a process that has ended left behind', async () => {
    const directory = await makeSpools([`${here}.${await endedPid()}.0123456789ab`])
    await sweepSpool(directory)
    expect(await readdir(directory)).toEqual([])
  })

  it('removes what an earlier process of the same number left behind, as it happens in containers', async () => {
    const directory = await makeSpools([`${here}.${process.pid}.0123456789ab`])
    await sweepSpool(directory)
    expect(await readdir(directory)).toEqual([])
  })

  it('leaves alone what this process and other running ones use', async () => {
    const directory = await makeSpools([`${here}.${process.ppid}.0123456789ab`, `${here}.1.0123456789ab`])
    const spool = createSpool(directory)
    await (await spool.create()).file.close()
    const before = await readdir(directory)
    expect(before).toContain(basename(spool.directory))
    await sweepSpool(directory)
    expect(await readdir(directory)).toEqual(before)
    await spool.close()
  })

  it('leaves spools of other machines alone for a day', async () => {
    const name = 'elsewhere.1.0123456789ab'
    const [fresh, old] = [await makeSpools([name], 23), await makeSpools([name], 25)]
    await Promise.all([sweepSpool(fresh), sweepSpool(old)])
    expect(await readdir(fresh)).toEqual([name])
    expect(await readdir(old)).toEqual([])
  })

  it('leaves everything else alone', async () => {
    const names = ['pictures', `${here}.1`, `${here}.x.0123456789ab`, `${here}.1.0123`, '.hidden']
    const directory = await makeSpools(names, 100)
    await sweepSpool(directory)
    expect((await readdir(directory)).sort()).toEqual(names.sort())
  })
})
