import { lookup as systemLookup } from 'node:dns'
import http from 'node:http'
import https from 'node:https'
import { connect as connectTo, isIP, type LookupFunction, type Socket } from 'node:net'
import { allowAddresses, type Reach } from './addresses.ts'
import { connectBy } from './agents.ts'
import { type Endpoint, isLoopback } from './proxy/no-proxy.ts'

/** After this long without an answer the next address of a host is tried. Node's default of 250 ms loses distant hosts. */
const NEXT_ADDRESS_MS = 2000

/** What may be dialled, and whether something was refused: node-fetch does not hand on the errors of its agents. */
export interface Guard {
  readonly addresses: Reach
  refused: boolean
  /** What a proxy said. */
  failure?: Error
}

/** Connects to an address. */
export type Dial = (endpoint: Endpoint) => Promise<Socket>

/**
 * An agent for one request that connects to allowed addresses only; otherwise it fails and sets `guard.refused`.
 *
 * @param dial in the place of a connection from here; this machine itself is never reached by it
 */
export function createGuardedAgent(
  protocol: 'http:' | 'https:',
  guard: Guard,
  lookup: LookupFunction = systemLookup,
  dial?: Dial,
): http.Agent {
  const options = {
    lookup: guardLookup(guard, lookup),
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: NEXT_ADDRESS_MS,
  }
  const agent = protocol === 'https:' ? new https.Agent(options) : new http.Agent(options)
  if (dial) {
    connectBy(agent, endpoint => dialAllowed(endpoint, guard, options.lookup, dial))
    return agent
  }
  const connect = agent.createConnection.bind(agent)
  agent.createConnection = (connection, created) => {
    const host = connection.host ?? ''
    // Nothing is looked up for a host that is an address already.
    if (isIP(host) !== 0 && !allowAddresses(guard.addresses)(host)) throw refuse(guard, host)
    return connect(connection, created)
  }
  return agent
}

/** Tries one address after the other. */
async function dialAllowed(
  { host, port }: Endpoint,
  guard: Guard,
  lookup: LookupFunction,
  dial: Dial,
): Promise<Socket> {
  for (const address of await resolve(host, guard, lookup)) {
    try {
      const socket = await (isLoopback(address)
        ? connectTo({ host: address, port })
        : dial({ host: address, port }))
      delete guard.failure
      return socket
    } catch (error) {
      guard.failure = error as Error
    }
  }
  throw guard.failure ?? refuse(guard, host)
}

function resolve(host: string, guard: Guard, lookup: LookupFunction): Promise<string[]> {
  if (isIP(host) !== 0) {
    if (!allowAddresses(guard.addresses)(host)) throw refuse(guard, host)
    return Promise.resolve([host])
  }
  return new Promise((resolve, reject) => {
    lookup(host, { all: true }, (error, found) => {
      if (error) reject(error)
      else resolve([found].flat().map(one => (typeof one === 'string' ? one : one.address)))
    })
  })
}

/** A lookup that leaves only the allowed addresses of an answer. It answers a list, as `autoSelectFamily` asks for. */
export function guardLookup(guard: Guard, lookup: LookupFunction): LookupFunction {
  return (hostname, options, callback) => {
    lookup(hostname, { ...options, all: true }, (error, answer) => {
      if (error) return callback(error, [])
      const found = typeof answer === 'string' ? [{ address: answer, family: isIP(answer) }] : answer
      const isAllowed = allowAddresses(guard.addresses)
      const allowed = found.filter(({ address }) => isAllowed(address))
      if (allowed.length > 0) callback(null, allowed)
      else callback(refuse(guard, hostname), [])
    })
  }
}

function refuse(guard: Guard, host: string): Error {
  guard.refused = true
  return new Error(`${host} has no address that may be dialled`)
}
