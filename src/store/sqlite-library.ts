import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import type Libsql from 'libsql'
import { isInstalled } from '../packages/optional.ts'
import { storeUnavailable } from './unavailable.ts'

/**
 * `libsql` holds none of SQLite: that comes as an optional package for each platform, which `npm install --omit=optional`
 * leaves out.
 *
 * @param system where the program runs; default: here
 * @throws UploadError `store_unavailable` that says what to install
 */
export function requireSqlite({ platform, arch }: Pick<NodeJS.Process, 'platform' | 'arch'> = process): void {
  const require = createRequire(import.meta.url)
  const library = require.resolve('libsql')
  const { optionalDependencies } = require(join(dirname(library), 'package.json')) as {
    optionalDependencies: Record<string, string>
  }
  const system = `${platform}-${arch}`
  const fitting = Object.entries(optionalDependencies).filter(([name]) =>
    `${name}-`.startsWith(`@libsql/${system}-`),
  )
  if (fitting.some(([name]) => isInstalled(name, library))) return
  const packages = fitting.map(([name, version]) => `${name}@${version}`).join('" or "npm install ')
  throw storeUnavailable(
    packages === ''
      ? `There is no SQLite for ${system}: keep the store in PostgreSQL (store.driver).`
      : `The store of the server needs SQLite for ${system}, which is not installed. Run "npm install ${packages}" where upload-server is installed, or install that without --omit=optional.`,
  )
}

/**
 * The library, which asks a report of Node which C library there is. With connections open, Node would look up the name of
 * each of their ends for that, and hold up everything until name servers that are slow or away have answered.
 */
export function loadSqlite(): typeof Libsql {
  const report = process.report as NodeJS.ProcessReport & { excludeNetwork: boolean }
  const { excludeNetwork } = report
  report.excludeNetwork = true
  try {
    return createRequire(import.meta.url)('libsql')
  } finally {
    report.excludeNetwork = excludeNetwork
  }
}
