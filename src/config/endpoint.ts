/** Whether an address to listen on is a loopback address. */
export function isLoopbackHost(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127\./.test(host)
}

/** Whether an address to listen on is the path of a Unix socket or of a named pipe. */
export function isSocketPath(host: string): boolean {
  return host.startsWith('/') || host.startsWith('\\\\.\\pipe\\')
}
