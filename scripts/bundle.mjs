import { readdir, readFile, writeFile } from 'node:fs/promises'
import { isAbsolute, join, sep } from 'node:path'
import { rolldown } from 'rolldown'

// Part of the build: build/, with one file for each module, becomes dist/, which is published. Node needs up to a millisecond
// to load a file, so modules that are loaded together become one: a command that uploads a file takes 40 % less processor time
// to start. All files of dist/ are in one folder: see src/package.ts.

/** The modules that Node or a user's program starts with. package.json and bin/ have the names of their files. */
const ENTRIES = {
  start: 'build/cli/start.js',
  index: 'build/index.js',
  provider: 'build/providers/kit.js',
  'provider-tests': 'build/provider-tests/index.js',
  client: 'build/client/index.js',
  playwright: 'build/cli/playwright.js',
  'picture-process': 'build/pictures/child.js',
}

/**
 * Packages that are taken in, as far as src/packages uses them. They need not be installed, but two are: zod, whose types are
 * those of the library, and commander, which the project was asked to depend on.
 */
const PACKAGES = /^(?:zod|commander|jsonc-parser)(?:\/|$)/

/** Functions of the bundler for code that it takes apart, such as templates with `</script>`. */
const HELPERS = '@oxc-project/runtime/'

const isOurs = id => ['.', 'build/', HELPERS].some(start => id.startsWith(start)) || isAbsolute(id)

await bundleModules()
await bundlePage()
await bundleReport()
await describeRoutes()
await describeOptions()

async function bundleModules() {
  const external = id => !isOurs(id) && !PACKAGES.test(id)
  const resolve = { mainFields: ['module', 'main'] }
  const bundle = await rolldown({ input: ENTRIES, platform: 'node', external, resolve })
  const { output } = await bundle.write({ dir: 'dist', comments: false, chunkFileNames: '[name].js' })
  await bundle.close()
  await listPackages(output.flatMap(({ moduleIds = [] }) => moduleIds))
}

/** What the modules were taken from: for the bill of materials, and the licences that go with the copies. */
async function listPackages(modules) {
  const folders = new Set(modules.flatMap(packageOf))
  const packages = await Promise.all([...folders].sort().map(readPackage))
  const listed = packages.map(({ name, version, license }) => ({ name, version, license }))
  await writeFile('dist/bundled.json', `${JSON.stringify(listed, undefined, 2)}\n`)
  await writeFile('dist/licences.txt', packages.map(({ name, text }) => `${name}\n\n${text}`).join('\n'))
}

/** The script of the upload page. What the page needs later is in files of its own. */
async function bundlePage() {
  const bundle = await rolldown({ input: 'src/page/browser/main.ts', platform: 'browser' })
  await bundle.write({ dir: 'dist/page', chunkFileNames: '[name].js', minify: true })
  await writeStyle('style.css', 'dist/page/style.css')
}

/** The script and the style of a report of images, which are written into it. */
async function bundleReport() {
  const bundle = await rolldown({ input: 'src/page/browser/report.ts', platform: 'browser' })
  await bundle.write({ dir: 'dist/report', minify: true })
  await writeStyle('report.css', 'dist/report/report.css')
}

async function writeStyle(name, file) {
  const styles = ['base.css', name].map(one => readFile(join('src/page/browser', one), 'utf8'))
  await writeFile(file, (await Promise.all(styles)).join('\n'))
}

/** GET /openapi.json sends this file. */
async function describeRoutes() {
  const { describeApi } = await import('../build/routes/openapi.js')
  await writeFile('dist/openapi.json', JSON.stringify(describeApi()))
}

/** What editors complete and check a configuration with. */
async function describeOptions() {
  const { describeConfig } = await import('../build/cli/config/run.js')
  await writeFile('config.schema.json', `${JSON.stringify(await describeConfig(), undefined, 2)}\n`)
}

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
