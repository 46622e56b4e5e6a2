import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join, sep } from 'node:path'
import { rolldown } from 'rolldown'

/**
 * Part of the build: these modules take in what they import. Loading a file takes up to a millisecond, and its text stays in
 * memory, so comments and spaces go; names stay for stack traces. What was taken in stands in bundled.json.
 */
const bundled = new Map()
for (const name of ['zod', 'kysely', 'file-type']) {
  const file = `dist/packages/${name}.js`
  const bundle = await rolldown({ input: file, platform: 'node' })
  const { output } = await bundle.generate()
  const packages = await Promise.all([...new Set(output[0].moduleIds.flatMap(packageOf))].map(readPackage))
  for (const one of packages) bundled.set(one.name, one)
  const banner = packages.map(one => `/*!\n${one.name}\n\n${one.text}*/`).join('\n')
  await bundle.write({ file, banner, minify: { mangle: false } })
  await bundle.close()
}
const listed = [...bundled.values()].map(({ name, version, license }) => ({ name, version, license }))
await writeFile('dist/packages/bundled.json', `${JSON.stringify(listed, undefined, 2)}\n`)

/** The folder of the package that a module belongs to. None for our own, and for those of the bundler. */
function packageOf(id) {
  const [, name] = id.split(`${sep}node_modules${sep}`)
  if (name === undefined) return []
  return [join('node_modules', ...name.split(sep).slice(0, name.startsWith('@') ? 2 : 1))]
}

async function readPackage(folder) {
  const { name, version, license } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'))
  const file = (await readdir(folder)).find(one => /^licen[cs]e/i.test(one))
  if (file === undefined) throw new Error(`${folder} has no file with its licence`)
  return { name, version, license, text: await readFile(join(folder, file), 'utf8') }
}
