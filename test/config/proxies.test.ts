import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { loadConfig } from '../../src/config/load.ts'
import { makeDirectory } from '../helpers/directory.ts'

const PUBLIC = { publicUrl: 'https://img.example.com' }

async function notesFor(server: object, auth: object = {}): Promise<string> {
  const directory = await makeDirectory()
  const file = join(directory, 'upload-server.json')
  const providers = { local: { Default: { directory: 'pictures', serve: true } } }
  await writeFile(file, JSON.stringify({ server, auth, providers }))
  const { notes } = await loadConfig({ env: {}, platform: 'linux', cwd: directory, file })
  return notes.join('\n')
}

it.each([
  ['server.publicUrl', PUBLIC],
  ['server.publicUrl', { ...PUBLIC, trustProxy: ['loopback'] }],
  ['server.trustProxy', { trustProxy: ['10.0.0.2'] }],
  ['server.publicUrl', { publicUrl: 'http://192.0.2.2:36677' }],
  ['server.publicUrl', { host: '0.0.0.0', publicUrl: 'http://img.example.com' }],
])('%s says that there is a proxy, and the operator is told what to set: %j', async (setting, server) => {
  expect(await notesFor(server)).toMatch(
    RegExp(`${setting} is set, so a reverse proxy.*auth\\.loopbackExempt to false`),
  )
})

it.each([
  [{}, {}],
  [PUBLIC, { loopbackExempt: false }],
  [{ ...PUBLIC, host: '/run/upload-server.sock' }, {}],
  [{ publicUrl: 'http://localhost:36677' }, {}],
  [{ host: '0.0.0.0', publicUrl: 'http://192.0.2.2:36677' }, {}],
])('nothing is said where nothing can be lent: %j, %j', async (server, auth) => {
  expect(await notesFor(server, auth)).toBe('')
})
