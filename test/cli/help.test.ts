import { readFile } from 'node:fs/promises'
import type { Command } from 'commander'
import { describe, expect, it } from 'vitest'
import { createProgram } from '../../src/cli/main.ts'
import type { Terminal } from '../../src/cli/terminal.ts'

const program = await createProgram({} as Terminal)
const commands = program
  .createHelp()
  .visibleCommands(program)
  .filter(one => one.name() !== 'help')
const all = commands.flatMap(one => [one, ...one.commands])
const pathOf = (one: Command): string =>
  one.parent?.parent ? `${pathOf(one.parent)} ${one.name()}` : one.name()

function helpOf(command: Command): string {
  let text = ''
  const writeOut = (part: string) => {
    text += part
  }
  command.configureOutput({ writeOut, getOutHelpWidth: () => 110 }).outputHelp()
  return text.trim()
}

describe.each(all.map(one => [pathOf(one), one] as const))('%s', (path, command) => {
  it('says what it and each of its options and arguments is for', () => {
    const texts = [...command.options, ...command.registeredArguments].map(one => one.description)
    expect([command.description(), ...texts]).not.toContain('')
  })

  it('shows no default that nobody could type', () => {
    expect(helpOf(command)).not.toMatch(/default: (?:\[|\{|undefined)/)
  })

  it('has two examples at least', () => {
    const [, examples = ''] = helpOf(command).split('\nExamples:\n')
    expect(examples.match(/^ {2}.*upload-server(?: |$)/gm)?.length).toBeGreaterThanOrEqual(2)
  })

  it('stands in docs/reference/cli.md with every option and default, as `npm run generate` writes it', async () => {
    expect(await readFile('docs/reference/cli.md', 'utf8')).toContain(
      `### \`${path}\`\n\n\`\`\`text\n${helpOf(command)}\n\`\`\`\n`,
    )
  })
})

it('docs/reference/cli.md names no command that is not there', async () => {
  const headings = (await readFile('docs/reference/cli.md', 'utf8')).matchAll(/^### `(.+)`$/gm)
  expect([...headings].map(([, name]) => name)).toEqual(all.map(pathOf))
})

it.each(['--help', '-h', 'help'])('%s lists the commands as they are, without loading them', async word => {
  const listed = await createProgram({} as Terminal, [word])
  expect(listed.commands.filter(one => one.options.length > 0)).toEqual([])
  expect(listed.helpInformation()).toBe(program.helpInformation())
})

it('the help of the program names --config, which most users need first', () => {
  expect(helpOf(program)).toContain('upload-server --config ')
})

it('a command that is named is loaded alone, and the server without the others', async () => {
  const named = async (...words: string[]) =>
    (await createProgram({} as Terminal, words)).commands.map(one => one.name())
  expect(await named()).toEqual(['serve'])
  expect(await named('--port', '0')).toEqual(['serve'])
  expect(await named('history', '--json')).toEqual(['history'])
  expect(await named('--port', '0', '--help')).toEqual([...commands.map(one => one.name()), 'complete'])
})
