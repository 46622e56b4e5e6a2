import { defineCommand, type Flags } from '../define.ts'
import { file, text } from '../flags.ts'

export const flags = {
  config: {
    short: '-c',
    about: 'file to create, or with --add to change (default: config.json in your configuration directory)',
    value: file,
  },
  provider: {
    about: 'provider of the destination, such as s3 (default: asks; local with --yes)',
    value: {
      shown: 'type',
      offers: async () => (await import('../../providers/registry.ts')).PROVIDER_TYPES,
    },
  },
  plugin: {
    about: 'package or file with additional providers; may be repeated',
    value: text('name'),
    isRepeatable: true,
  },
  name: { about: 'name of the destination', value: text('name'), default: 'Default' },
  set: {
    about: 'option of the destination; may be repeated',
    value: text('option=value'),
    isRepeatable: true,
  },
  key: { short: '-k', about: 'upload key for remote clients', value: text('key'), isSecret: true },
  add: {
    about: 'add the destination to an existing configuration; its comments and its order stay',
    excludes: ['plugin', 'key'],
  },
  yes: { short: '-y', about: 'ask no questions and use the defaults' },
  check: { about: 'save the file without testing the destination', isNegated: true },
} as const satisfies Flags

export const init = defineCommand({
  name: 'init',
  about: 'create a configuration, or add a destination: ask questions, test the destination, save the file',
  flags,
  examples: [
    ['upload-server init'],
    ['upload-server init --add --name blog'],
    ['upload-server init --yes --provider local --set directory=/srv/pictures --set serve=true'],
    [`upload-server init --yes --provider github --set repo=me/img --set 'token=\${GITHUB_TOKEN}'`],
  ],
  load: () => import('./run.ts'),
})
