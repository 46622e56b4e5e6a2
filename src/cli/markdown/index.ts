import { defineCommand, type Flags, type Value } from '../define.ts'
import { choice, config, credentials, folder, serverUrl } from '../flags.ts'

const host = {
  shown: 'host[:port]',
  must: 'a host such as img.example.com or 127.0.0.1:36677',
  read(typed: string) {
    const address = /^https?:\/\//i.test(typed) ? typed : `http://${typed}`
    if (!URL.canParse(address)) return undefined
    const { pathname, search, hash, username, host } = new URL(address)
    return pathname + search + hash === '/' && username === '' ? host : undefined
  },
} as const satisfies Value

export const flags = {
  config,
  dryRun: { short: '-n', about: 'show the changes as a diff; upload and write nothing' },
  from: {
    about: 'move images that are at this host, instead of local ones; may be repeated',
    value: host,
    isRepeatable: true,
    excludes: ['server'],
  },
  root: {
    about:
      'also upload images in this folder; may be repeated (default: the folders of the notes, their Git repositories and Obsidian vaults)',
    value: folder,
    isRepeatable: true,
  },
  undo: {
    about: 'restore the notes from their newest backups',
    excludes: ['server', 'destination', 'root', 'from'],
  },
  backup: { about: 'do not back up changed notes as NOTE.md.bak', isNegated: true },
  ...choice,
  server: { about: 'upload through a running server', value: serverUrl },
  ...credentials,
} as const satisfies Flags

export const markdown = defineCommand({
  name: 'markdown',
  about: 'upload the images of Markdown notes and replace their links',
  arg: { spelling: '<file...>', about: 'notes, or folders of notes', offers: 'file' },
  flags,
  examples: [
    ['upload-server markdown --dry-run notes/', 'show the changes as a diff'],
    ['upload-server markdown notes/ README.md'],
    ['upload-server markdown --root ~/.config/Typora/typora-user-images notes/'],
    ['upload-server markdown --from old.example.com --destination s3 notes/'],
    ['upload-server markdown --undo notes/'],
  ],
  notes:
    "Finds Markdown images, <img> tags and ![[embeds]]. A link whose image can't be uploaded is reported and stays unchanged.",
  exitCodes: { 0: 'success', 1: 'some links failed', 130: 'interrupted (Ctrl-C)' },
  load: () => import('./run.ts'),
})
