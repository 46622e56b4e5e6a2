import { chown, mkdir, readdir } from 'node:fs/promises'
import { describe, expect, it } from 'vitest'
import { createSpool } from '../../../src/payload/spool.ts'
import { makeDirectory } from '../../helpers/directory.ts'
import { needsRoot } from '../../helpers/needs.ts'

describe('a spool', () => {
  it('attack: somebody puts a folder of his own in its place: it is not used', async context => {
    needsRoot(context, 'a folder gets another owner')
    const spool = createSpool(await makeDirectory())
    await mkdir(spool.directory)
    await chown(spool.directory, 12345, 12345)
    await expect(spool.create()).rejects.toMatchObject({ code: 'EACCES' })
    expect(await readdir(spool.directory)).toEqual([])
  })
})
