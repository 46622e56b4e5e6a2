#!/usr/bin/env node
// licences.mjs FOLDER: the licence of every package that is installed below the folder, or taken into a file there, one a
// line. Fails when one has none
// or one that asks more of whoever passes it on than the notice itself, unless it is named as fine below.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const FINE = new Set([
  'MIT',
  'MIT-0',
  'ISC',
  'Apache-2.0',
  'BSD-2-Clause',
  'BSD-3-Clause',
  '0BSD',
  'BlueOak-1.0.0',
  'Unlicense',
])

/** Libraries that are loaded as they are and can be exchanged, which is what the LGPL asks for. */
const WEAK = /^(?:@img\/sharp-|libheif-js$)/

/** What is installed, and what scripts/bundle.mjs has taken in. */
function* packagesBelow(folder) {
  for (const file of readdirSync(folder, { recursive: true, encoding: 'utf8' }).sort()) {
    const read = () => JSON.parse(readFileSync(join(folder, file), 'utf8'))
    if (/(?:^|[/\\])node_modules[/\\](?:@[^/\\]+[/\\])?[^/\\]+[/\\]package\.json$/.test(file)) yield read()
    if (/(?:^|[/\\])dist[/\\]bundled\.json$/.test(file)) yield* read()
  }
}

const [folder = '.'] = process.argv.slice(2)
let failed = false
for (const { name, version, license, licenses } of packagesBelow(folder)) {
  if (!name || !version) continue
  const text = license?.type ?? license ?? licenses?.map(one => one.type).join(' OR ') ?? ''
  const parts = text.replace(/[()]/g, '').split(/ (?:AND|OR) /)
  const isFine = text.includes(' OR ') ? parts.some(one => FINE.has(one)) : parts.every(one => FINE.has(one))
  const isWeak =
    WEAK.test(name) && parts.every(one => FINE.has(one) || /^LGPL-3\.0(?:-or-later|-only)?$/.test(one))
  if (!isFine && !isWeak) failed = true
  process.stdout.write(`${isFine || isWeak ? '' : 'NOT FINE: '}${name}@${version}\t${text || 'none'}\n`)
}
process.exitCode = failed ? 1 : 0
