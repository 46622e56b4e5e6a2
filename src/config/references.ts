import { UploadError } from '../errors.ts'
import { isRecord, type Json, pathOf } from '../members.ts'
import { type Steps, walk } from '../options.ts'
import { canonicalType, PROVIDER_TYPES } from '../providers/registry.ts'
import { chooseDestination, type DestinationName, idOf, splitId } from '../uploader/destinations.ts'
import { isSocketPath } from './endpoint.ts'
import type { Plugins } from './plugins.ts'
import type { OnProblem } from './problems.ts'
import { listNamed } from './providers.ts'
import { destinationName } from './values.ts'

/** Settings that name destinations. `*` is any member or entry. */
const REFERENCES = [
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
  const select = (...patterns: readonly string[]) =>
    patterns.flatMap(pattern => leaves.filter(([steps]) => fits(pattern, steps)))

  const all = listNamed(providers)
  // An unknown provider has been reported already, so what refers to its destinations is not reported again.
  const isKnown = ({ type }: DestinationName) =>
    !plugins.isComplete || plugins.providers.has(type) || PROVIDER_TYPES.includes(type)
  const known = all.filter(isKnown)
  const available = known.map(one => `"${idOf(one)}"`).join(', ')
  if (known.length > 0) checkDefault(wanted, known, all, available, report)
  else if (all.length === 0 && isRecord(providers) && Object.values(providers).every(isRecord))
    report('providers', 'has no destination. Add one as providers.TYPE.NAME')

  for (const [steps, id] of select(...REFERENCES)) {
    if (!isName(id)) continue
    const [section, type, own] = steps
    const named = splitId(id)
    const isOwn = section === 'providers' && named.type === canonicalType(`${type}`) && named.name === own
    if (isOwn) report(pathOf(steps), 'must be another destination, not this one')
    else if (!isThere(id, all)) report(pathOf(steps), `"${id}" is not a destination. Available: ${available}`)
  }
  const [host] = select('server.host')
  const isUnix = select('auth.reverseProxy.from.*').some(([, from]) => from === 'unix')
  if (isUnix && !isSocketPath(String(host?.[1])))
    report('auth.reverseProxy.from', 'has "unix", but server.host is not a Unix socket')

  for (const { what, of } of UNIQUE) {
    const owners = new Map<unknown, string>()
    for (const [steps, value] of select(...of)) {
      const owner = owners.get(value)
      if (owner === undefined) owners.set(value, pathOf(steps))
      else report(pathOf(steps), `is the same ${what} as ${owner}. Choose a different one`)
    }
  }
}

/** @param known the destinations of `all` whose provider exists */
function checkDefault(
  wanted: unknown,
  known: readonly DestinationName[],
  all: readonly DestinationName[],
  available: string,
  report: OnProblem,
): void {
  if (wanted === undefined && known.length > 1)
    report('default', `is required, because there are several destinations. Available: ${available}`)
  if (!isName(wanted) || (isThere(wanted, all) && !isThere(wanted, known))) return
  try {
    chooseDestination({ destinations: known, defaultId: wanted })
  } catch (error) {
    if (!(error instanceof UploadError)) throw error
    report('default', `"${wanted}" can't be used. ${error.message}`)
  }
}

/** Whether it is written like a destination. If not, the schema reports it. */
const isName = (value: unknown): value is string => destinationName.safeParse(value).success

function isThere(id: string, all: readonly DestinationName[]): boolean {
  const { type, name } = splitId(id)
  return all.some(one => one.type === type && (name === undefined || one.name === name))
}

const fits = (pattern: string, steps: Steps) => {
  const wanted = pattern.split('.')
  return wanted.length === steps.length && wanted.every((one, i) => one === '*' || one === steps[i])
}
