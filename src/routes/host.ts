/** Port included; names have at most 253 characters (RFC 1035 section 2.3.4). */
const MAX_LENGTH = 260
const HOST = /^(?:[a-z0-9_-]+(?:\.[a-z0-9_-]+)*\.?|\[[0-9a-f:.]+\])(?::\d{1,5})?$/i

/** Whether an address can begin with what a Host header holds: a name or an IP literal, and a port or none. */
export function isHost(host: string): boolean {
  return host.length <= MAX_LENGTH && HOST.test(host) && URL.canParse(`http://${host}`)
}
