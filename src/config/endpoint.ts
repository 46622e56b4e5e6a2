import { isPossibleHost } from '../options.ts'

/** Whether an address to listen on is the path of a Unix socket or of a named pipe. */
export function isSocketPath(host: string): boolean {
  return host.startsWith('/') || host.startsWith('\\\\.\\pipe\\')
}

/** Whether a server can listen on it. Whether the name or the address exists is known at the start only. */
export function isListenHost(host: string): boolean {
  return isSocketPath(host) || (!host.startsWith('[') && isPossibleHost(host))
}

/** Whether a `Host` header can have this value, with or without a port: a name as it is sent, or an IP address. */
export function isHostHeader(host: string): boolean {
  return (
    /^(?:[\w-]+(?:\.[\w-]+)*\.?|\[[\da-f:.]+\])(?::\d{1,5})?$/i.test(host) && URL.canParse(`http://${host}`)
  )
}

/** Whether an `Origin` header can have this value, with or without a final slash. `null` is not one. */
export function isOrigin(text: string): boolean {
  const origin = text.toLowerCase().replace(/\/$/, '')
  if (!/^https?:/.test(origin)) return /^[a-z][a-z0-9+.-]*:\/\/[^\s/\\,?#*]+$/.test(origin)
  return URL.canParse(origin) && new URL(origin).origin === origin && !origin.includes('*')
}
