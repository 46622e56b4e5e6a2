import { completeProxy, type ProxyServer, parseProxy } from './address.ts'
import { type Environment, readVariable, VARIABLES } from './environment.ts'
import { ProxyFailure } from './failure.ts'
import { type Endpoint, isLoopback, parseNoProxy } from './no-proxy.ts'

/** `tcp:` stands for everything that is not HTTP. */
export interface Wanted extends Endpoint {
  readonly protocol: 'http:' | 'https:' | 'tcp:'
}

/** How connections leave this machine. */
export interface Outgoing {
  /** File with the certificates of authorities to trust beside the usual ones. */
  readonly caFile: string | undefined
  /** The proxies that were chosen so far, by host and port. */
  readonly used: ReadonlySet<string>
  /**
   * The proxy to go through; undefined when it goes straight.
   *
   * @throws ProxyFailure when a variable of the environment names one that can't be used
   */
  proxyFor(wanted: Wanted): ProxyServer | undefined
  /** Variables that have a program go the same way; undefined: one to be taken away. */
  readonly variables: Environment
  /** The same with a proxy of its own, and the record of its own; as it is when there is none. */
  with(proxy: string | undefined): Outgoing
}

/** Where a web address leads. */
export function targetOf({ protocol, hostname, port }: URL): Wanted {
  const isSecure = protocol === 'https:'
  return {
    protocol: isSecure ? 'https:' : 'http:',
    host: hostname.replace(/^\[|\]$/g, ''),
    port: Number(port || (isSecure ? 443 : 80)),
  }
}

export interface OutgoingSettings {
  /** `environment`, `none`, or the address of a proxy. */
  readonly proxy: string
  /** What goes past `proxy`, in the spellings of `NO_PROXY`. */
  readonly noProxy: readonly string[]
  readonly caFile?: string | undefined
}

type Choose = (wanted: Wanted) => ProxyServer | undefined

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
      // A destination's own proxy is taken at its word.
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

/** For commands that have no configuration: what the variables of the environment say. */
export function fromEnvironment(env: Environment): Outgoing {
  return createOutgoing({ proxy: 'environment', noProxy: [] }, env)
}

/** Past every proxy. */
export const DIRECT: Outgoing = createOutgoing({ proxy: 'none', noProxy: [] }, {})

/** In either case: curl reads the lower one alone. Programs ask proxies for this machine, too, unless they are told. */
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
  if (word !== 'none' && proxy === undefined) throw new Error('the address of a proxy was not checked')
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
    throw new ProxyFailure(
      `the variable ${found.name} names no proxy that can be used: it takes http, https, socks5 and socks5h`,
    )
  }
}
