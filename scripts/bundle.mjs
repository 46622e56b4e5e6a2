import { copyFile, readdir, readFile, writeFile } from 'node:fs/promises'
import { join, sep } from 'node:path'
import { rolldown } from 'rolldown'

// Part of the build: build/, with one file for each module, becomes dist/, which is published. Node needs up to a millisecond
// to load a file, so modules that are loaded together become one: a command that uploads a file loads 30 files instead of 200
// and takes a fifth less time. All files of dist/ are in one folder: see src/package.ts.

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

/** What is loaded one after the other. Each stage gets these modules and all that they import, unless an earlier one has them. */
const STAGES = {
  package: ['package.js', 'config/paths.js'],
  main: ['cli/main.js'],
  // What a server and its clients need.
  common: [
    'files/held.js',
    'files/make-path.js',
    'files/own-paths.js',
    'flow/map-concurrently.js',
    'flow/retry.js',
    'http/agents.js',
    'http/exchange.js',
    'http/proxy/outgoing.js',
    'packages/optional.js',
    'payload/folder.js',
    'payload/index.js',
    'times.js',
    'uploader/destinations.js',
  ],
  config: ['config/load.js'],
  uploading: ['server/open-uploader.js'],
}

/**
 * Packages that become one file each. src/packages says what is used of them, and why they are bundled. They need not be installed,
 * but two are: zod, whose types are those of the library, and commander, which the project was asked to depend on.
 */
const PACKAGES = ['zod', 'commander']

await bundleModules()
await bundlePackages()
await bundlePage()
await bundleReport()
await describeRoutes()
await describeOptions()

/** The script of the upload page. What the page needs later is in files of its own. */
async function bundlePage() {
  const bundle = await rolldown({ input: 'src/page/browser/main.ts', platform: 'browser' })
  await bundle.write({ dir: 'dist/page', chunkFileNames: '[name].js', minify: true })
  await copyFile('src/page/browser/style.css', 'dist/page/style.css')
}

/** The script and the style of a report of images, which are written into it. */
async function bundleReport() {
  const bundle = await rolldown({ input: 'src/page/browser/report.ts', platform: 'browser' })
  await bundle.write({ dir: 'dist/report', minify: true })
  await copyFile('src/page/browser/report.css', 'dist/report/report.css')
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

async function bundleModules() {
  const packages = new RegExp(`/packages/(${PACKAGES.join('|')})\\.js$`)
  const bundle = await rolldown({
    input: ENTRIES,
    platform: 'node',
    plugins: [
      {
        name: 'stays outside',
        resolveId(id) {
          const [, name] = packages.exec(id) ?? []
          if (name) return { id: `./${name}.js`, external: true }
          return /^(?:\.|build\/)/.test(id) ? undefined : { id, external: true }
        },
      },
    ],
  })
  await bundle.write({
    dir: 'dist',
    comments: false,
    codeSplitting: {
      groups: Object.entries(STAGES).map(([name, files], index, { length }) => ({
        name,
        test: id => files.some(file => id.endsWith(join('/build', file))),
        priority: length - index,
      })),
    },
    entryFileNames: '[name].js',
    // The provider of s3/index.js is s3.js, and the command upload/run.js is upload.js.
    chunkFileNames: ({ name, moduleIds }) =>
      `${['index', 'run'].includes(name) ? moduleIds.at(-1).split(sep).at(-2) : name}.js`,
  })
  await bundle.close()
}

/** Without comments and spaces, because their text stays in memory. Names stay, for stack traces. */
async function bundlePackages() {
  const bundled = new Map()
  for (const name of PACKAGES) {
    const bundle = await rolldown({ input: `build/packages/${name}.js`, platform: 'node' })
    const { output } = await bundle.generate()
    const packages = await Promise.all([...new Set(output[0].moduleIds.flatMap(packageOf))].map(readPackage))
    for (const one of packages) bundled.set(one.name, one)
    const banner = packages.map(one => `/*!\n${one.name}\n\n${one.text}*/`).join('\n')
    await bundle.write({ file: `dist/${name}.js`, banner, minify: { mangle: false } })
    await bundle.close()
  }
  const listed = [...bundled.values()].map(({ name, version, license }) => ({ name, version, license }))
  await writeFile('dist/bundled.json', `${JSON.stringify(listed, undefined, 2)}\n`)
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
