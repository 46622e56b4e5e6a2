import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { makeMachine, problemsOf } from '../helpers/load-config.ts'

const FIXTURES = fileURLToPath(new URL('../fixtures/', import.meta.url))

/** Files with a configuration, a line `---`, and what is reported of it. */
const MISTAKES = readdirSync(join(FIXTURES, 'configurations'))

/** Configurations of one line, each with what is reported of it. */
const LINES = readFileSync(join(FIXTURES, 'mistakes.txt'), 'utf8').matchAll(/^(.*)\n((?: {2}.*\n)+)/gm)

async function reportedOf(name: string, text: string): Promise<string> {
  const { cwd, load } = await makeMachine({ [name]: text })
  const { message } = await load({ file: name }).then(
    () => expect.fail('this should have failed'),
    (error: Error) => error,
  )
  return `${message.replaceAll(`${cwd}/`, '')}\n`
}

describe('everything that is wrong is reported at once, with its line:', () => {
  it.each(MISTAKES)('%s', async name => {
    const [text = '', expected] = readFileSync(join(FIXTURES, 'configurations', name), 'utf8').split('---\n')
    expect(await reportedOf(name, text)).toBe(expected)
  })

  it.each([...LINES].map(([, text = '', reported]) => [text, reported]))('%s', async (text, reported) => {
    expect(await reportedOf('c.json', text ?? '')).toBe(`Could not load c.json:\n${reported}`)
  })
})

describe('a file with too many levels is refused with its line, not with a stack overflow:', () => {
  it.each([
    ['ours', '{"providers":\n', '}'],
    ['of PicGo', '{"picBed":\n', '}'],
    ['a list', '\n', ''],
  ])('%s', async (_, start, end) => {
    const nested = `${start}${'['.repeat(200_000)}${']'.repeat(200_000)}${end}`
    expect(await problemsOf(nested)).toEqual(['has more than 100 levels of objects and lists in line 2'])
  })
})
