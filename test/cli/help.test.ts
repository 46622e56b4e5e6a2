import { readFile } from 'node:fs/promises'
import { describe, expect, it } from 'vitest'
import { COMMANDS } from '../../src/cli/commands.ts'
import { type Command, spell } from '../../src/cli/define.ts'
import { runCli } from './run-cli.ts'

type Row = [path: string, command: Command]

const ALL: Row[] = COMMANDS.flatMap(one => [
  [one.name, one] satisfies Row,
  ...(one.commands ?? []).map((below): Row => [`${one.name} ${below.name}`, below]),
])

describe.each(ALL)('%s', (path, { about, arg, flags = {}, examples, commands = [] }) => {
  it('says what it and each of its options and arguments is for', () => {
    const texts = [about, ...(arg ? [arg.about] : []), ...Object.values(flags).map(one => one.about)]
    expect(texts).not.toContain('')
  })

  it('has two examples at least, with options that it has', () => {
    expect(examples.filter(([line]) => line.includes('upload-server')).length).toBeGreaterThanOrEqual(2)
    const known = [...Object.entries(flags).map(([name, flag]) => spell(name, flag)), '--help']
    for (const [line] of commands.length > 0 ? [] : examples) {
      const [, given = ''] = line.split(`upload-server ${path} `)
      for (const [, option] of given.matchAll(/(?:^| )(--[a-z][\w-]*)/g)) expect(known).toContain(option)
    }
  })

  it('relates its options to options that it has', () => {
    const related = Object.values(flags).flatMap(({ needs = [], excludes = [] }) => [needs, excludes].flat())
    expect(Object.keys(flags)).toEqual(expect.arrayContaining(related))
  })

  it('shows no default that nobody could type, and everything that its description has', async () => {
    const { code, stdout } = await runCli([...path.split(' '), '--help'], { cwd: '/' })
    expect(code).toBe(0)
    expect(stdout).not.toMatch(/default: (?:\[|\{|undefined)/)
    for (const [name, flag] of Object.entries(flags)) expect(stdout).toContain(spell(name, flag))
    for (const { name } of commands) expect(stdout).toContain(`\n  ${name} `)
  })
})

it('docs/reference/cli.md has a table for each command, and for no other', async () => {
  const headings = (await readFile('docs/reference/cli.md', 'utf8')).matchAll(/^### `(.+)`$/gm)
  expect([...headings].map(([, name]) => name)).toEqual(ALL.map(([path]) => path))
})

it.each(['--help', '-h', 'help'])('%s lists every command', async word => {
  const { code, stdout } = await runCli([word], { cwd: '/' })
  expect(code).toBe(0)
  for (const { name } of COMMANDS) expect(stdout).toMatch(new RegExp(`^ {2}${name}\\b`, 'm'))
  expect(stdout).toContain('upload-server --config ')
})
