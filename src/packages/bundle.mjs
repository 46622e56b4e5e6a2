import { readFile } from 'node:fs/promises'
import { build } from 'rolldown'

/** Part of the build: these modules take in what they import. Loading a file takes up to a millisecond. */
for (const name of ['zod', 'kysely']) {
  const file = `dist/packages/${name}.js`
  const banner = `/*!\n${await readFile(`node_modules/${name}/LICENSE`, 'utf8')}*/`
  await build({ input: file, output: { file, banner }, platform: 'node' })
}
