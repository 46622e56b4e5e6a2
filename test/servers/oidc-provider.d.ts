/** The part of the package that the tests use; it has no types of its own. */
declare module 'oidc-provider' {
  import type { RequestListener } from 'node:http'

  class Provider {
    constructor(issuer: string, configuration: object)
    callback(): RequestListener
  }

  // biome-ignore lint/style/noDefaultExport: it is how the package exports it
  export { Provider as default }
}
