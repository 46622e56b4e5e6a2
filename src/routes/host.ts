/** Port included; names have at most 253 characters (RFC 1035 section 2.3.4). */
const MAX_LENGTH = 260
const HOST = /^(?:[a-z0-9_-]+(?:\.[a-z0-9_-]+)*\.?|\[[0-9a-f:.]+\])(?::\d{1,5})?$/i

/** The last host that was accepted, because most requests have the same one. */
let accepted = ''

/** Whether an address can begin with what a Host header holds: a name or an IP literal, and a port or none. */
export function isHost(host: string): boolean {
  if (host === accepted && host !== '') return true
  if (host.length > MAX_LENGTH || !HOST.test(host) || !URL.canParse(`http://${host}`)) return false
  accepted = host
  return true
}
