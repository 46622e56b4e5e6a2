import { readFile, writeFile } from 'node:fs/promises'
import { build } from 'rolldown'

/**
 * Part of the build: these modules take in what they import. Loading a file takes up to a millisecond, and its text stays in
 * memory, so comments and spaces go; names stay for stack traces. What was taken in stands in bundled.json.
 */
const bundled = []
for (const name of ['zod', 'kysely']) {
  const file = `dist/packages/${name}.js`
  const banner = `/*!\n${await readFile(`node_modules/${name}/LICENSE`, 'utf8')}*/`
  await build({ input: file, output: { file, banner, minify: { mangle: false } }, platform: 'node' })
  const { version, license } = JSON.parse(await readFile(`node_modules/${name}/package.json`, 'utf8'))
  bundled.push({ name, version, license })
}
await writeFile('dist/packages/bundled.json', `${JSON.stringify(bundled, undefined, 2)}\n`)
