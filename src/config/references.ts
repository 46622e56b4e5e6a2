import { UploadError } from '../errors.ts'
import { isRecord, type Json, pathOf } from '../members.ts'
import { type Steps, walk } from '../options.ts'
import { PROVIDER_TYPES } from '../providers/registry.ts'
import {
  chooseDestination,
  type DestinationName,
  idOf,
  isCovered,
  splitId,
} from '../uploader/destinations.ts'
import { isSocketPath } from './endpoint.ts'
import type { Plugins } from './plugins.ts'
import type { OnProblem } from './problems.ts'
import { listNamed } from './providers.ts'
import { destinationName } from './values.ts'

/** Settings that name destinations. `*` is any member or entry. */
const REFERENCES = [
  'default',
  'auth.keys.*.destinations.*',
  'auth.tokens.*.destinations.*',
  'auth.reverseProxy.destinations.*',
  'providers.*.*.fallback',
  'providers.*.*.mirrors.*',
  'providers.*.*.mirrors.*.destination',
]

/** Settings whose values must differ, and what they are. */
const UNIQUE = [
  { what: 'name', of: ['auth.keys.*.name'] },
  { what: 'name', of: ['auth.tokens.*.name'] },
  { what: 'secret', of: ['server.key', 'auth.keys.*.key'] },
]

/**
 * Checks that the destinations exist that settings name, and that names and secrets of clients are unique. It checks the
 * configuration as it was read, so that these errors are reported together with all others.
 */
export function checkReferences(config: Json, plugins: Plugins, report: OnProblem): void {
  const { default: wanted, providers } = config
  const leaves: [Steps, unknown][] = []
  walk(undefined, config, (value, _, steps) => leaves.push([steps, value]))
  const select = (patterns: readonly string[]) =>
    patterns.flatMap(pattern => leaves.filter(([steps]) => fits(pattern, steps)))

  const all = listNamed(providers)
  if (all.length === 0 && isRecord(providers) && Object.values(providers).every(isRecord))
    report('providers', 'has no destination. Add one as providers.TYPE.NAME')
  // An unknown provider has been reported already, so what refers to its destinations is not reported again.
  const known = all.filter(
    ({ type }) => !plugins.isComplete || plugins.providers.has(type) || PROVIDER_TYPES.includes(type),
  )
  const available = known.map(one => `"${idOf(one)}"`).join(', ')
  const isThere = (id: string) => all.some(one => isCovered(one, [id]))
  for (const [steps, id] of known.length > 0 ? select(REFERENCES) : []) {
    // What is not written like a destination is reported by the schema.
    if (typeof id !== 'string' || !destinationName.safeParse(id).success) continue
    const { type, name } = splitId(id)
    if (steps[0] === 'providers' && steps[1] === type && steps[2] === name)
      report(pathOf(steps), 'must be another destination, not this one')
    else if (!isThere(id)) report(pathOf(steps), `"${id}" is not a destination. Available: ${available}`)
  }
  if (wanted === undefined && known.length > 1)
    report('default', `is required, because there are several destinations. Available: ${available}`)
  if (typeof wanted === 'string' && isThere(wanted)) checkDefault(wanted, all, report)

  const [host] = select(['server.host'])
  const isUnix = select(['auth.reverseProxy.from.*']).some(([, from]) => from === 'unix')
  if (isUnix && !isSocketPath(String(host?.[1])))
    report('auth.reverseProxy.from', 'has "unix", but server.host is not a Unix socket')

  for (const { what, of } of UNIQUE) {
    const owners = new Map<unknown, string>()
    for (const [steps, value] of select(of)) {
      const owner = owners.get(value)
      if (owner === undefined) owners.set(value, pathOf(steps))
      else report(pathOf(steps), `is the same ${what} as ${owner}. Choose a different one`)
    }
  }
}

/** A provider alone is ambiguous if it has several destinations, none of which is its default. */
function checkDefault(wanted: string, all: readonly DestinationName[], report: OnProblem): void {
  try {
    chooseDestination({ destinations: all, defaultId: wanted })
  } catch (error) {
    if (!(error instanceof UploadError)) throw error
    report('default', `"${wanted}" can't be used. ${error.message}`)
  }
}

const fits = (pattern: string, steps: Steps) => {
  const wanted = pattern.split('.')
  return wanted.length === steps.length && wanted.every((one, i) => one === '*' || one === steps[i])
}
