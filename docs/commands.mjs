import { createProgram } from '../build/cli/main.js'

/** What every command says with --help, for docs/reference/cli.md. */
export async function describeCommands() {
  const program = await createProgram({})
  const shown = program.createHelp().visibleCommands(program)
  const commands = shown.filter(one => one.name() !== 'help').flatMap(one => [one, ...one.commands])
  return commands.map(one => `### \`${pathOf(one)}\`\n\n\`\`\`text\n${helpOf(one)}\n\`\`\``).join('\n\n')
}

function pathOf(command) {
  return command.parent?.parent ? `${pathOf(command.parent)} ${command.name()}` : command.name()
}

function helpOf(command) {
  let text = ''
  const writeOut = part => {
    text += part
  }
  command.configureOutput({ writeOut, getOutHelpWidth: () => 110 }).outputHelp()
  return text.trim()
}
