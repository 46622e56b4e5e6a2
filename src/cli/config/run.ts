import { existsSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { noteUnused, readText } from '../../config/file.ts'
import { ConfigError, showConfig } from '../../config/load.ts'
import { isPicGoConfig, parseJson } from '../../config/parse.ts'
import { importPicGo } from '../../config/picgo/index.ts'
import { NO_PLUGINS, type Plugins } from '../../config/plugins.ts'
import { wholeSchema } from '../../config/providers.ts'
import { readConfig } from '../../config/read.ts'
import { findRisks } from '../../config/risks.ts'
import { toJsonSchema } from '../../options.ts'
import { idOf } from '../../uploader/destinations.ts'
import { closeTargets, openDestinations } from '../../uploader/open.ts'
import type { Call } from '../define.ts'
import { openConfig } from '../open.ts'
import { type Terminal, toJson } from '../terminal.ts'
import type { flags } from './index.ts'

/** `config show`: the configuration with all defaults, secrets masked. */
export async function show({ options }: Call<typeof flags>, terminal: Terminal): Promise<number> {
  noteUnused({ ...terminal, file: options.config }, terminal.note)
  terminal.print(toJson(showConfig(await openConfig(options, terminal), terminal.mask)))
  return 0
}

/** `config validate`: returns 0 if the configuration is valid. Throws a ConfigError otherwise. */
export async function validate({ options }: Call<typeof flags>, terminal: Terminal): Promise<number> {
  noteUnused({ ...terminal, file: options.config }, terminal.note)
  const config = await openConfig(options, terminal)
  const { destinations, settings, file = 'The default configuration', notes } = config
  const opened = await openDestinations(destinations, settings.keyTemplate, terminal.note)
  await closeTargets(opened.map(({ target }) => target))
  terminal.print(`${file} is valid. Destinations: ${destinations.map(idOf).join(', ')}`)
  for (const note of [...notes, ...findRisks(config, opened)]) terminal.note(note)
  return 0
}

/** `config schema`: the JSON Schema of the file, for editors, which show errors in it with the help of the schema. */
export async function printSchema(
  { options: { config: file } }: Call<typeof flags>,
  terminal: Terminal,
): Promise<number> {
  const note = (reason: string) =>
    terminal.note(`The schema does not include plugins of the configuration. ${reason}`)
  const where = { ...terminal, file }
  noteUnused(where, terminal.note)
  let plugins = NO_PLUGINS
  try {
    plugins = (
      await readConfig(where, (path, message) => {
        if (path.startsWith('plugins[')) note(`${path}: ${message}`)
      })
    ).plugins
  } catch (error) {
    if (file !== undefined || !(error instanceof ConfigError)) throw error
    note(error.message)
  }
  terminal.print(toJson(await describeConfig(plugins)))
  return 0
}

/** JSON Schema 2020-12 of the configuration file, with all providers, including those of plugins. */
export async function describeConfig(plugins?: Plugins): Promise<object> {
  const schema = toJsonSchema(await wholeSchema(undefined, plugins), 'ref')
  const $comment = 'Generated from the schemas in src by "npm run build".'
  return { $comment, ...schema, title: 'Configuration of upload-server' }
}

/** `config import FILE`: prints the converted file on standard output, and what could not be imported on standard error. */
export async function importFile({ words: [file = ''] }: Call, terminal: Terminal): Promise<number> {
  const path = resolve(terminal.cwd, file)
  const report = (path: string, message: string) => terminal.note(`"${path}" ${message}.`)
  const { value: old } = parseJson(readText(path), report, file)
  if (!isPicGoConfig(old)) {
    terminal.note(`${file} is not a configuration of PicGo or PicList, because it has no "picBed".`)
    return 1
  }
  const { config, notes, problem } = await importPicGo(old)
  terminal.print(toJson(config))
  for (const note of [...notes, ...(problem ? [problem] : [])]) terminal.note(note)
  for (const name of GALLERIES)
    if (existsSync(resolve(dirname(path), name)))
      terminal.note(`"${name}" was ignored: the gallery is not imported.`)
  return 0
}

/** Where PicGo and PicList keep their galleries, next to their configurations. */
const GALLERIES = ['picgo.db', 'piclist.db']
