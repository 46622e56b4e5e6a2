import { parseJson, readText } from '../config/file.ts'
import { importPicGo } from '../config/import.ts'
import { loadConfig, showConfig } from '../config/load.ts'
import { isPicGoConfig } from '../config/picgo/recognise.ts'
import { wholeSchema } from '../config/providers.ts'
import { leaveOutUnusable } from '../config/unusable.ts'
import * as z from '../packages/zod.ts'
import { idOf, openDestinations } from '../uploader/delivery/destinations.ts'
import { type CommonOptions, type Terminal, toJson } from './terminal.ts'

/** `config show`: the configuration as the server sees it, defaults filled in and secrets masked. */
export async function showCommand(options: CommonOptions, terminal: Terminal): Promise<number> {
  const config = await loadConfig({ ...terminal, file: options.config })
  terminal.learn(config.secrets)
  terminal.print(toJson(showConfig(config, terminal.mask)))
  return 0
}

/** `config validate`: 0 when the server would start with it. Mistakes arrive as a ConfigError. */
export async function validateCommand(options: CommonOptions, terminal: Terminal): Promise<number> {
  const config = await loadConfig({ ...terminal, file: options.config })
  terminal.learn(config.secrets)
  const opened = await openDestinations(config.destinations, config.settings.keyTemplate, terminal.note)
  await Promise.all(opened.map(destination => destination.target.close?.()))
  terminal.print(
    `${config.file ?? 'The embedded default'} is fine. Destinations: ${config.destinations.map(idOf).join(', ')}`,
  )
  for (const note of config.notes) terminal.note(note)
  return 0
}

/** `config schema`: the JSON Schema of the file, for editors. */
export async function schemaCommand(terminal: Terminal): Promise<number> {
  terminal.print(toJson(await describeConfig()))
  return 0
}

/** JSON Schema 2020-12 of the configuration file with every provider of this version. */
export async function describeConfig(): Promise<object> {
  const schema = z.toJSONSchema(await wholeSchema(), { io: 'input', unrepresentable: 'any' })
  return { ...schema, title: 'Configuration of upload-server' }
}

/** `config import FILE`: a PicGo or PicList file as one of ours on standard output; what is lost on standard error. */
export async function importCommand(file: string, terminal: Terminal): Promise<number> {
  const note = (path: string, message: string) => terminal.note(`"${path}" ${message}.`)
  const old = await parseJson(readText(file), note).catch((error: Error) => {
    throw new Error(`${file} ${error.message}`)
  })
  if (!isPicGoConfig(old)) {
    terminal.note(`${file} is no configuration of PicGo or PicList: it has no "picBed".`)
    return 1
  }
  const imported = await importPicGo(old as Record<string, unknown>)
  const { config, notes } = await leaveOutUnusable(imported, (_, problem) => terminal.note(problem))
  terminal.print(toJson(config))
  for (const note of notes) terminal.note(note)
  return 0
}
