import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'

const SRC = fileURLToPath(new URL('../src', import.meta.url))

/**
 * The rooms of the house, each with those it may take from. A room stands below all that take from it, so data flows one
 * way. Files at the top of `src` but `index.ts` (the library) are for every room.
 */
const MAY_USE: Readonly<Record<string, readonly string[]>> = {
  flow: [],
  packages: [],
  files: ['flow'],
  clipboard: ['flow', 'payload'],
  payload: ['flow', 'packages', 'files'],
  http: ['flow', 'packages'],
  store: ['flow', 'packages', 'files', 'payload'],
  pictures: ['flow', 'packages', 'payload'],
  providers: ['flow', 'packages', 'files', 'payload', 'http'],
  'provider-tests': ['http', 'providers'],
  tokens: ['flow', 'http'],
  uploader: ['flow', 'packages', 'files', 'clipboard', 'payload', 'http', 'store', 'pictures', 'providers'],
  config: ['flow', 'packages', 'payload', 'http', 'pictures', 'providers', 'uploader', 'tokens'],
  page: [],
  routes: ['flow', 'packages', 'payload', 'pictures', 'store', 'uploader', 'page', 'tokens'],
  server: [
    ...['flow', 'files', 'payload', 'http', 'store', 'pictures', 'uploader', 'tokens'],
    ...['config', 'routes'],
  ],
  // The other wing: what talks to a server, or acts for a user. No room of the server takes from it.
  client: ['flow', 'packages', 'files', 'clipboard', 'payload', 'http', 'page'],
  // Both wings meet here, and nowhere else.
  cli: [
    ...[
      'flow',
      'packages',
      'files',
      'clipboard',
      'payload',
      'http',
      'store',
      'pictures',
      'providers',
      'uploader',
    ],
    ...['config', 'page', 'server', 'client'],
  ],
}

/** Packages that belong to one room. */
const PACKAGES: Readonly<Record<string, string>> = {
  express: 'routes',
  multer: 'routes',
  commander: 'packages',
  tinyglobby: 'client',
  dotenv: 'config',
  sharp: 'pictures',
  '@photostructure/sqlite': 'store',
  pg: 'store',
  jose: 'tokens',
  zod: 'packages',
  '@lezer/markdown': 'client',
  parse5: 'client',
  vitest: 'provider-tests',
  '@playwright/test': 'cli',
}

const FILES = readdirSync(SRC, { recursive: true, withFileTypes: true })
  .filter(entry => entry.isFile() && entry.name.endsWith('.ts'))
  .map(entry => relative(SRC, join(entry.parentPath, entry.name)))

/** Undefined for a file at the top of `src`. */
function roomOf(path: string): string | undefined {
  return path.includes('/') ? path.slice(0, path.indexOf('/')) : undefined
}

/** Modules a file names in imports, of types too. */
function importsOf(path: string): string[] {
  const text = readFileSync(join(SRC, path), 'utf8')
  return [...text.matchAll(/(?:^(?:import|export)\b[^'"\n;]*?|^\} from |\bimport\()\s*'([^']+)'/gm)].map(
    ([, name = '']) => name,
  )
}

const filesIn = (room: string) => FILES.filter(path => roomOf(path) === room)

describe('every room', () => {
  const rooms = [...new Set(FILES.flatMap(path => roomOf(path) ?? []))].sort()

  it('stands in the table', () => {
    expect(rooms).toEqual(Object.keys(MAY_USE).sort())
  })

  it.each(rooms)('%s takes from the rooms below it only', room => {
    const allowed = [room, ...(MAY_USE[room] ?? [])]
    const taken = filesIn(room).flatMap(path =>
      importsOf(path)
        .filter(name => name.startsWith('.'))
        .map(name => ({ path, from: join(dirname(path), name) })),
    )
    expect(
      taken.filter(({ from }) => !allowed.includes(roomOf(from) ?? room) || from === 'index.ts'),
    ).toEqual([])
  })
})

it.each(Object.entries(PACKAGES))('%s is used in %s alone', (name, room) => {
  const users = FILES.filter(path => importsOf(path).some(one => one === name || one.startsWith(`${name}/`)))
  expect(users).not.toEqual([])
  expect([...new Set(users.map(roomOf))]).toEqual([room])
})

/** Where connections to others are opened. What is in no row goes through `src/http`, and so through the proxy. */
const OPENS: Readonly<Record<string, readonly string[]>> = {
  'node:net': ['http'],
  'node:tls': ['http', 'providers/ftp'],
  'node:http': ['http', 'http/proxy'],
  'node-fetch': ['http'],
  ssh2: ['providers/sftp'],
  'basic-ftp': ['providers/ftp'],
  '@aws-sdk/credential-provider-node': ['providers/s3'],
}

it('nothing opens a connection past the proxy', () => {
  const opening = (path: string) => {
    const text = readFileSync(join(SRC, path), 'utf8')
    const named = [...text.matchAll(/^import \{([^}]*)\} from '(node:\w+|node-fetch)'/gm)]
      .filter(([, names = '']) => /\b(?:connect|request|get|createConnection|createSocket)\b/.test(names))
      .map(([, , name = '']) => name)
    const whole = [...text.matchAll(/^import (?!type|\{)[\w* ]+ from '([^']+)'|\bimport\('([^'.]+)'\)/gm)]
    return [...named, ...whole.flatMap(([, one, other]) => one ?? other ?? [])]
  }
  const found = FILES.filter(path => roomOf(path) !== 'provider-tests')
    .flatMap(path => opening(path).map(name => [name, dirname(path)] as const))
    .filter(
      ([name]) => /^(?:node:(?:net|tls|dgram|http2?|https)|undici|ws|axios|got)$/.test(name) || name in OPENS,
    )
  const allowed = Object.entries(OPENS).flatMap(([name, folders]) => folders.map(one => `${name} ${one}`))
  expect([...new Set(found.map(one => one.join(' ')))].sort()).toEqual(allowed.sort())
})

it('V8 is set by the one command that starts a server', () => {
  const setting = FILES.filter(path =>
    /^ *setFlagsFromString\('--heap/m.test(readFileSync(join(SRC, path), 'utf8')),
  )
  expect(setting).toEqual(['server/v8-settings.ts'])
  const users = FILES.filter(path => importsOf(path).some(name => name.endsWith('/v8-settings.ts')))
  expect(users).toEqual(['cli/serve/run.ts'])
})

it('providers do not take from each other, but from the folder of the protocol they speak', () => {
  const single = FILES.filter(path => /^providers\/[a-z0-9]+\.ts$/.test(path))
  const siblings = single.flatMap(path =>
    importsOf(path)
      .filter(name => /^\.\/[a-z0-9]+\.ts$/.test(name) && name !== './contract.ts')
      .map(name => [path, name]),
  )
  expect(siblings.filter(([path]) => path !== 'providers/registry.ts')).toEqual([])
})
