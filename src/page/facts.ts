/** A destination that the visitor may use. */
export interface DestinationChoice {
  readonly picbed: string
  readonly configName: string
  readonly isDefault: boolean
  /** The image options that a request may set: `format`, `quality`, `size`, `stripMetadata`. */
  readonly pictures: readonly string[]
  /** The expiry times to choose from, such as `7d`, the default first. Empty if files at this destination never expire. */
  readonly expiry: readonly string[]
}

/**
 * How the reverse proxy knows people. `password`: perhaps by a user name and password, which programs can send; `page`: single
 * sign-on, which needs a browser; `network`: by their machine, so programs on it need nothing.
 */
export type SignIn = 'password' | 'page' | 'network'

/** What the visitor may do. The names of destinations are only for those who may upload. */
export type Visitor =
  | {
      /** `proxy`: a reverse proxy names the person, or added the key, since a browser sends none when it loads a page. */
      readonly admittedBy: 'loopback' | 'key' | 'proxy' | 'anonymous'
      /** The person whom the reverse proxy names. */
      readonly user?: string | undefined
      /** Undefined: no reverse proxy signed the visitor in. */
      readonly signIn?: SignIn | undefined
      readonly choices: readonly DestinationChoice[]
      /** Whether the server returns the visitor's upload history. */
      readonly hasHistory: boolean
      /** Maximum size of a file, bytes, if the visitor has a limit of their own. */
      readonly fileSize?: number | undefined
    }
  | {
      readonly admittedBy?: never
      /** Error code of the reason, with the server's message. */
      readonly code: string
      readonly message: string
      /** Whether an upload key would not help. */
      readonly isKeyUseless: boolean
    }

/** What `GET /page/me` returns: everything on the page that depends on the visitor. */
export interface Me {
  /** URL of the server for this visitor, without a trailing slash. */
  readonly base: string
  readonly visitor: Visitor
  /** The formats that images can be converted to. */
  readonly pictureFormats: readonly string[]
  /** Maximum file size in bytes. */
  readonly fileSize: number
}

/** The query parameter that chooses a destination. */
export function destinationQuery({
  picbed,
  configName,
}: Pick<DestinationChoice, 'picbed' | 'configName'>): string {
  return `destination=${encodeURIComponent(picbed)}/${encodeURIComponent(configName)}`
}
