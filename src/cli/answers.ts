import type { Provider } from '../providers/contract.ts'

/** What a first configuration is made of. */
export interface Answers {
  readonly provider: Provider
  readonly name: string
  readonly options: Readonly<Record<string, unknown>>
  /** Of the server itself. */
  readonly settings: {
    readonly plugins?: readonly string[]
    readonly server?: {
      readonly host?: string
      readonly port?: number
      readonly publicUrl?: string
      readonly key?: string
    }
    readonly auth?: { readonly loopbackExempt: boolean }
    readonly keyTemplate?: string
  }
}

/** What of that stands on the command line. */
export interface Given extends Answers {
  /** Whether the provider was named. */
  readonly isChosen: boolean
  /** Options of a provider to begin with, by its type. */
  readonly suggested: Readonly<Record<string, Readonly<Record<string, unknown>>>>
}
