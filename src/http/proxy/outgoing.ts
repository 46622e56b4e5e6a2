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

  function create(choose: Choose): Outgoing {
    const used = new Set<string>()
    return {
      caFile,
      used,
      proxyFor(wanted) {
        const chosen = choose(wanted)
        if (chosen) used.add(chosen.label)
        return chosen
      },
      // A destination's own proxy is taken at its word.
      with: own =>
        create(
          own === undefined ? choose : own === 'environment' ? exceptLoopback(fromEnvironment) : byWord(own),
        ),
    }
  }
  return create(exceptLoopback(wanted => (isPast(wanted) ? undefined : general(wanted))))
}

/** Past every proxy. */
export const DIRECT: Outgoing = createOutgoing({ proxy: 'none', noProxy: [] }, {})

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
