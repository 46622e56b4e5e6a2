import { completeProxy, type ProxyServer, parseProxy } from './address.ts'
import { type Environment, readVariable, VARIABLES } from './environment.ts'
import { ProxyFailure } from './failure.ts'
import { type Endpoint, isLoopback, parseNoProxy } from './no-proxy.ts'

/** `tcp:` means any protocol other than HTTP. */
export interface OutgoingTarget extends Endpoint {
  readonly protocol: 'http:' | 'https:' | 'tcp:'
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

type Choose = (wanted: OutgoingTarget) => ProxyServer | undefined

/** @param env what `environment` reads: `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`, the lower case first */
export function createOutgoing({ proxy, noProxy, caFile }: OutgoingSettings, env: Environment): Outgoing {
  const isPast = parseNoProxy(noProxy)
  const fromEnvironment = chooseByEnvironment(env)
  const byWord = (word: string): Choose => (word === 'environment' ? fromEnvironment : chooseAlways(word))
  const general = byWord(proxy)

  function create(choose: Choose, variables: Environment): Outgoing {
    const used = new Set<string>()
    return {
      caFile,
      used,
      variables,
      proxyFor(wanted) {
        const chosen = choose(wanted)
        if (chosen) used.add(chosen.label)
        return chosen
      },
      // `noProxy` does not apply to a destination's own proxy.
      with(own) {
        if (own === undefined) return create(choose, variables)
        const chosen = own === 'environment' ? exceptLoopback(fromEnvironment) : byWord(own)
        return create(chosen, variablesFor(own, [], env))
      },
    }
  }
  return create(
    exceptLoopback(wanted => (isPast(wanted) ? undefined : general(wanted))),
    variablesFor(proxy, noProxy, env),
  )
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
  const past = address && ['localhost', '127.0.0.0/8', '::1', before, noProxy].flat().join(',')
  const all = isInherited ? {} : { http_proxy: address, https_proxy: address, all_proxy: address }
  return Object.fromEntries(
    Object.entries({ ...all, no_proxy: past }).flatMap(([name, value]) => [
      [name, value],
      [name.toUpperCase(), value],
    ]),
  )
}

function exceptLoopback(choose: Choose): Choose {
  return wanted => (isLoopback(wanted.host) ? undefined : choose(wanted))
}

function chooseAlways(word: string): Choose {
  const proxy = word === 'none' ? undefined : parseProxy(word)
  if (word !== 'none' && proxy === undefined) throw new Error('the URL of a proxy was not validated')
  return () => proxy
}

function chooseByEnvironment(env: Environment): Choose {
  const isPast = parseNoProxy([readVariable(env, 'NO_PROXY')?.value ?? ''])
  return wanted => {
    if (isPast(wanted)) return undefined
    const [found] = VARIABLES[wanted.protocol].flatMap(name => readVariable(env, name) ?? [])
    if (found === undefined) return undefined
    const proxy = parseProxy(completeProxy(found.value))
    if (proxy) return proxy
    throw new ProxyFailure(`the environment variable ${found.name} is not a valid proxy URL`, {
      advice: 'Use http, https, socks5 or socks5h.',
    })
  }
}
