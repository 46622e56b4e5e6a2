import { dial } from '../../src/http/dial.ts'

/**
 * Leads every connection to 127.0.0.1, whatever name it is for, so that names such as `pictures.s3.localhost` and the vendors'
 * own can be used.
 *
 * @param port leads to this port instead of the one that was asked for
 * @param ca certificate to trust; the name is checked against it as usual
 */
export function dialLoopback({ port, ca }: { port?: number; ca?: string } = {}): typeof dial {
  return (endpoint, { tls, ...options }) =>
    dial(
      { ...endpoint, port: port ?? endpoint.port },
      {
        ...options,
        tls: tls && { ...tls, ...(ca !== undefined && { ca }) },
        lookup: async () => ['127.0.0.1'],
      },
    )
}
