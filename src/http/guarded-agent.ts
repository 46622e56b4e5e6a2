import { lookup as systemLookup } from 'node:dns'
import { Agent } from 'node:http'
import https from 'node:https'
import { connect as connectTo, isIP, type LookupFunction, type Socket } from 'node:net'
import { type AddressScope, allowAddresses } from './addresses.ts'
import { connectBy, limitTimes } from './agents.ts'
import { DIAL_MS } from './network.ts'
import { type Endpoint, isLoopback } from './proxy/no-proxy.ts'

/** Time after which the next IP address of a host is tried. Node's default of 250 ms fails for distant hosts. */
const NEXT_ADDRESS_MS = 2000

/** The allowed IP addresses, and whether one was rejected: node-fetch does not pass on the errors of its agents. */
export interface Guard {
  readonly addresses: AddressScope
  refused: boolean
  /** Whether the host has public IP addresses. */
  isPublic?: boolean
  /** Failure of the proxy. */
  failure?: Error
}

/** Connects to an IP address. */
export type Dial = (endpoint: Endpoint) => Promise<Socket>

/**
 * Creates an agent for one request that connects to allowed IP addresses only. Otherwise it fails and sets `guard.refused`.
 *
 * @param dial used instead of a direct connection, except for this machine itself
 */
export function createGuardedAgent(
  protocol: 'http:' | 'https:',
  guard: Guard,
  lookup: LookupFunction = systemLookup,
  dial?: Dial,
): Agent {
  const options = {
    lookup: guardLookup(guard, lookup),
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: NEXT_ADDRESS_MS,
  }
  const agent = protocol === 'https:' ? new https.Agent(options) : new Agent(options)
  if (dial) {
    connectBy(agent, endpoint => dialAllowed(endpoint, guard, options.lookup, dial))
    return limitTimes(agent, 0)
  }
  const connect = agent.createConnection.bind(agent)
  agent.createConnection = (connection, created) => {
    const host = connection.host ?? ''
    // An IP address needs no DNS lookup.
    if (isIP(host) !== 0) judge(guard, host)
    return connect(connection, created)
  }
  return limitTimes(agent, 0)
}

/** Tries the IP addresses one after the other. */
async function dialAllowed(
  { host, port }: Endpoint,
  guard: Guard,
  lookup: LookupFunction,
  dial: Dial,
): Promise<Socket> {
  const begun = performance.now()
  for (const address of await resolve(host, guard, lookup)) {
    if (performance.now() - begun >= DIAL_MS) break
    try {
      const socket = await (isLoopback(address)
        ? connectTo({ host: address, port })
        : dial({ host: address, port }))
      delete guard.failure
      return socket
    } catch (error) {
      guard.failure = error instanceof Error ? error : new Error(String(error))
    }
  }
  throw guard.failure ?? refuse(guard, host)
}

function resolve(host: string, guard: Guard, lookup: LookupFunction): Promise<string[]> {
  if (isIP(host) !== 0) {
    judge(guard, host)
    return Promise.resolve([host])
  }
  return new Promise((resolve, reject) => {
    lookup(host, { all: true }, (error, found) => {
      if (error) reject(error)
      else resolve([found].flat().map(one => (typeof one === 'string' ? one : one.address)))
    })
  })
}

/** Creates a lookup that returns only allowed IP addresses, as a list for `autoSelectFamily`. */
export function guardLookup(guard: Guard, lookup: LookupFunction): LookupFunction {
  return (hostname, options, callback) => {
    lookup(hostname, { ...options, all: true }, (error, answer) => {
      if (error) return callback(error, [])
      const found = typeof answer === 'string' ? [{ address: answer, family: isIP(answer) }] : answer
      const isAllowed = allowAddresses(guard.addresses)
      const allowed = found.filter(({ address }) => isAllowed(address))
      const isPublic = allowAddresses('public')
      guard.isPublic = allowed.some(({ address }) => isPublic(address))
      if (allowed.length > 0) callback(null, allowed)
      else callback(refuse(guard, hostname), [])
    })
  }
}

/** @throws Error for an IP address that is not allowed */
function judge(guard: Guard, address: string): void {
  if (!allowAddresses(guard.addresses)(address)) throw refuse(guard, address)
  guard.isPublic = allowAddresses('public')(address)
}

function refuse(guard: Guard, host: string): Error {
  guard.refused = true
  return new Error(`${host} has no IP address that is allowed`)
}
