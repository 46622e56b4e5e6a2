import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { makeDirectory } from '../helpers/directory.ts'
import { runBuilt, runCli } from './run-cli.ts'

const FIXTURES = fileURLToPath(new URL('../fixtures/picgo/', import.meta.url))

describe('config schema', () => {
  it('of the built program is config.schema.json, which editors load, below 160 KB', async () => {
    const { code, stdout, stderr } = await runBuilt(['config', 'schema'], { cwd: await makeDirectory() })
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toBe(await readFile(new URL('../../config.schema.json', import.meta.url), 'utf8'))
    expect(stdout.length).toBeLessThan(160 * 1024)
  })
})

describe('config.schema.json tells an editor', () => {
  const readJson = async (name: string) =>
    JSON.parse(await readFile(new URL(`../../${name}`, import.meta.url), 'utf8'))

  it('that the example is right', async () => {
    const schema = z.fromJSONSchema(await readJson('config.schema.json'))
    expect(schema.safeParse(await readJson('upload-server.example.json')).error).toBeUndefined()
    expect(schema.safeParse({}).success).toBe(true)
  })

  it.each([
    { sever: {} },
    { server: { prot: 1 } },
    { server: { port: 'x' } },
    { log: { level: 'loud' } },
    { limits: { fileSize: true } },
    { auth: { keys: [{ name: 'a' }] } },
    { providers: { nope: { a: {} } } },
    { providers: { local: { a: { serve: true } } } },
    { providers: { local: { a: { directory: 'x', directry: 'y' } } } },
  ])('that %j is wrong', async config => {
    const schema = z.fromJSONSchema(await readJson('config.schema.json'))
    expect(schema.safeParse(config).success).toBe(false)
  })
})

describe('config import', () => {
  it.each(['picgo-desktop', 'piclist-desktop', 'picgo-core-3', 'broken'])('takes the file %s', async name => {
    const path = join(FIXTURES, `${name}.json`)
    const { code, stdout } = await runCli(['config', 'import', path], { cwd: await makeDirectory() })
    expect(code).toBe(0)
    expect(JSON.parse(stdout)).toHaveProperty('providers')
  })
})
