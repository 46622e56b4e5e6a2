import { readdirSync, readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { importPicGo } from '../../src/config/import.ts'
import { loadConfig } from '../../src/config/load.ts'
import { leaveOutUnusable } from '../../src/config/unusable.ts'
import { makeDirectory } from '../helpers/directory.ts'

const FIXTURES = fileURLToPath(new URL('../fixtures/', import.meta.url))

/** Files with a configuration, a line `---`, and what is reported of it. */
const MISTAKES = readdirSync(join(FIXTURES, 'configurations'))

describe('everything that is wrong is reported at once, with its line:', () => {
  it.each(MISTAKES)('%s', async name => {
    const [text = '', expected] = readFileSync(join(FIXTURES, 'configurations', name), 'utf8').split('---\n')
    const cwd = await makeDirectory()
    await writeFile(join(cwd, name), text)
    const { message } = await loadConfig({ env: {}, platform: 'linux', cwd, file: name }).then(
      () => expect.fail('this should have failed'),
      (error: Error) => error,
    )
    expect(`${message.replaceAll(`${cwd}/`, '')}\n`).toBe(expected)
  })
})

const PICGO = readdirSync(join(FIXTURES, 'picgo')).filter(name => name.endsWith('.json'))

/** What `config import` prints of each file, and what it reports. */
describe('a file of PicGo or PicList becomes a configuration, and notes say what was left out:', () => {
  it.each(PICGO)('%s', async name => {
    const old = JSON.parse(readFileSync(join(FIXTURES, 'picgo', name), 'utf8'))
    const problems: string[] = []
    const imported = await leaveOutUnusable(await importPicGo(old), (_, problem) => problems.push(problem))
    const printed = [JSON.stringify(imported.config, undefined, 2), ...imported.notes, ...problems]
    const golden = join(FIXTURES, 'picgo', name.replace('.json', '.txt'))
    await expect(`${printed.join('\n')}\n`).toMatchFileSnapshot(golden)
  })
})
