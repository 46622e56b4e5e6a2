import { defineCommand, type Flags } from '../define.ts'
import { config as configFlag } from '../flags.ts'

export const flags = { config: configFlag } as const satisfies Flags

const show = defineCommand({
  name: 'show',
  about: 'print the configuration with all defaults; secrets are masked',
  flags,
  examples: [['upload-server config show'], ['upload-server config show --config blog.json']],
  load: async () => ({ run: (await import('./run.ts')).show }),
})

const validate = defineCommand({
  name: 'validate',
  about: 'report all errors in the configuration without connecting to destinations (see also: check)',
  flags,
  examples: [['upload-server config validate'], ['upload-server config validate --config blog.json']],
  load: async () => ({ run: (await import('./run.ts')).validate }),
})

const schema = defineCommand({
  name: 'schema',
  about: 'print the JSON Schema of the configuration for editors, including options of its plugins',
  flags,
  examples: [
    ['upload-server config schema > config.schema.json'],
    ['upload-server config schema --config blog.json > blog.schema.json'],
  ],
  load: async () => ({ run: (await import('./run.ts')).printSchema }),
})

const importFile = defineCommand({
  name: 'import',
  about: 'convert a configuration of PicGo or PicList and print the result',
  arg: { spelling: '<file>', about: 'config.json or data.json of PicGo or PicList', offers: 'file' },
  examples: [
    ['upload-server config import data.json > blog.json'],
    ['upload-server config import ~/.picgo/config.json > blog.json'],
  ],
  load: async () => ({ run: (await import('./run.ts')).importFile }),
})

export const config = defineCommand({
  name: 'config',
  about: 'show, validate or import the configuration',
  examples: [['upload-server config validate'], ['upload-server config import data.json > blog.json']],
  commands: [show, validate, schema, importFile],
})
