import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { describe, expect, it } from 'vitest'
import { readFileList } from '../src/client/file-list.ts'
import { readImages } from '../src/client/reports/read-results.ts'
import { readText } from '../src/config/file.ts'
import { interpolate } from '../src/config/interpolate.ts'
import { readDotenv } from '../src/config/override.ts'
import { readSxcu } from '../src/providers/http/sxcu.ts'
import { makeDirectory } from './helpers/directory.ts'

const ENCODINGS: Readonly<Record<string, (text: string) => Buffer>> = {
  'UTF-8': text => Buffer.from(text),
  'UTF-8 with a byte order mark (Notepad)': text => Buffer.from(`\ufeff${text}`),
  'UTF-16 (PowerShell, "Unicode" of Notepad)': text => Buffer.from(`\ufeff${text}`, 'utf16le'),
  'big-endian UTF-16 (Notepad)': text => Buffer.from(`\ufeff${text}`, 'utf16le').swap16(),
}

const SXCU = { RequestURL: 'https://img.example/é', Body: 'Binary', URL: '{response}' }
const result = { name: 'é.png', url: 'https://img.example/a.png' }

const NO_INPUT = { cwd: '/', stdin: Readable.from([]) }

const READERS: readonly [name: string, text: string, read: (path: string) => unknown, found: unknown][] = [
  ['a configuration', '{ "a": "é" }', path => readText(path), '{ "a": "é" }'],
  ['a secret', 'gé heim\r\n', path => interpolate(`\${file:${path}}`, {}, '/', () => {}).value, 'gé heim'],
  ['.env', 'A=é\r\nB=2\r\n', readDotenv, { A: 'é', B: '2' }],
  ['a .sxcu file', JSON.stringify(SXCU), path => readSxcu(path).url, 'https://img.example/é'],
  ['a list of files', 'é.png\r\nb\r\n', path => readFileList(path, NO_INPUT), ['é.png', 'b']],
  ['results', `${JSON.stringify(result)}\r\n`, path => readImages(path, NO_INPUT), { images: [{ result }] }],
]

describe.each(READERS)('%s from Windows', (_, text, read, found) => {
  it.each(Object.entries(ENCODINGS))('is read in %s', async (_, encode) => {
    const path = join(await makeDirectory(), 'file')
    await writeFile(path, encode(text))
    expect(await read(path)).toEqual(found)
  })
})
