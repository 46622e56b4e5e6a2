import { completeProxy, type ProxyServer, parseProxy, secretsOfProxy } from './address.ts'
import { type Endpoint, isLoopback, parseNoProxy } from './no-proxy.ts'
import { ProxyFailure } from './tunnel.ts'

/** `tcp:` means any protocol other than HTTP. */
export interface OutgoingTarget extends Endpoint {
  readonly protocol: keyof typeof VARIABLES
}

/** How connections leave this machine. */
export interface Outgoing {
  /** PEM file with CA certificates to trust in addition to the built-in ones. */
  readonly caFile: string | undefined
  /** Proxies used so far, as host and port. */
  readonly used: ReadonlySet<string>
  /**
   * Returns the proxy to use, or undefined for a direct connection.
   *
   * @throws ProxyFailure if an environment variable contains an invalid proxy URL
   */
  proxyFor(wanted: OutgoingTarget): ProxyServer | undefined
  /** Environment variables that make a program use the same proxies. Undefined: remove the variable. */
  readonly variables: Environment
  /** Returns a copy with a proxy of its own, if given, and its own records. */
  with(proxy: string | undefined): Outgoing
}

/** Returns the endpoint of an http or https URL. */
export function targetOf({ protocol, hostname, port }: URL): OutgoingTarget {
  const isSecure = protocol === 'https:'
  return {
    protocol: isSecure ? 'https:' : 'http:',
    host: hostname.replace(/^\[|\]$/g, ''),
    port: Number(port || (isSecure ? 443 : 80)),
  }
}

export interface OutgoingSettings {
  /** `environment`, `none`, or the URL of a proxy. */
  readonly proxy: string
  /** Hosts that bypass `proxy`, in the syntax of `NO_PROXY`. */
  readonly noProxy: readonly string[]
  readonly caFile?: string | undefined
}

type Environment = Readonly<Record<string, string | undefined>>

/**
 * @param env what `environment` reads: `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`, the lower case first
 * @param isOwn whether the settings are those of one destination, whose proxy is also used for this machine
 */
export function createOutgoing(settings: OutgoingSettings, env: Environment, isOwn = false): Outgoing {
  const { proxy, noProxy, caFile } = settings
  const isPast = parseNoProxy(noProxy)
  const choose = chooserOf(proxy, env)
  const isForLoopback = isOwn && proxy !== 'environment'
  const used = new Set<string>()
  return {
    caFile,
    used,
    variables: variablesFor(proxy, noProxy, env),
    proxyFor(wanted) {
      if (isPast(wanted) || (isLoopback(wanted.host) && !isForLoopback)) return undefined
      const chosen = choose(wanted)
      if (chosen) used.add(chosen.label)
      return chosen
    },
    // `noProxy` does not apply to a destination's own proxy.
    with: own =>
      own === undefined
        ? createOutgoing(settings, env, isOwn)
        : createOutgoing({ proxy: own, noProxy: [], caFile }, env, true),
  }
}

/** Uses the proxies of the environment, for commands without a configuration. */
export function fromEnvironment(env: Environment): Outgoing {
  return createOutgoing({ proxy: 'environment', noProxy: [] }, env)
}

/** No proxy. */
export const DIRECT: Outgoing = createOutgoing({ proxy: 'none', noProxy: [] }, {})

/** Sets both cases, because curl reads only the lower one. Without NO_PROXY, programs would use the proxy for this machine. */
function variablesFor(word: string, noProxy: readonly string[], env: Environment): Environment {
  const isInherited = word === 'environment'
  if (isInherited && noProxy.length === 0) return {}
  const address = word === 'none' ? undefined : word
  const before = isInherited ? (readVariable(env, 'NO_PROXY')?.value ?? []) : []
  const no_proxy = address && ['localhost', '127.0.0.0/8', '::1', before, noProxy].flat().join(',')
  const all = isInherited ? {} : { http_proxy: address, https_proxy: address, all_proxy: address }
  const lower = Object.entries({ ...all, no_proxy })
  return Object.fromEntries([...lower, ...lower.map(([name, value]) => [name.toUpperCase(), value])])
}

/** The environment variables for proxies, by protocol. The first two apply only to HTTP. */
const VARIABLES = {
  'http:': ['HTTP_PROXY', 'ALL_PROXY'],
  'https:': ['HTTPS_PROXY', 'ALL_PROXY'],
  'tcp:': ['ALL_PROXY'],
}

/** @throws ProxyFailure if the URL of the proxy is invalid, because nothing may go past a proxy that was wanted */
function chooserOf(word: string, env: Environment): Outgoing['proxyFor'] {
  if (word === 'none') return () => undefined
  if (word !== 'environment') {
    const proxy = readProxy(word, 'the URL of a proxy')
    return () => proxy
  }
  const isPast = parseNoProxy([readVariable(env, 'NO_PROXY')?.value ?? ''])
  return wanted => {
    const [found] = VARIABLES[wanted.protocol].flatMap(name => readVariable(env, name) ?? [])
    if (found === undefined || isPast(wanted)) return undefined
    return readProxy(completeProxy(found.value), `the environment variable ${found.name}`)
  }
}

function readProxy(address: string, what: string): ProxyServer {
  const proxy = parseProxy(address)
  if (proxy) return proxy
  const advice = 'Use http, https, socks5 or socks5h.'
  throw new ProxyFailure(`${what} is not a valid proxy URL`, { advice })
}

/** The passwords in the proxy URLs of the environment. */
export function secretsOfEnvironment(env: Environment): string[] {
  const names = new Set(Object.values(VARIABLES).flat())
  return [...names].flatMap(name => secretsOfProxy(completeProxy(readVariable(env, name)?.value ?? '')))
}

/** A variable in either case, the lower one first; undefined when it is empty. */
function readVariable(env: Environment, variable: string): { name: string; value: string } | undefined {
  const name = [variable.toLowerCase(), variable].find(spelled => env[spelled]?.trim())
  return name === undefined ? undefined : { name, value: env[name]?.trim() ?? '' }
}
