import type { Provider } from '../../providers/contract.ts'

/** Everything that `init` writes into the configuration file. */
export interface Answers {
  readonly provider: Provider
  /** Name of the destination. */
  readonly name: string
  /** Options of the destination. */
  readonly options: Readonly<Record<string, unknown>>
  /** Settings outside of the destination. */
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

/** The part of the answers that the command line already gives. */
export interface Preset extends Answers {
  /** Whether `--provider` was given, so that the question is skipped. */
  readonly isChosen: boolean
  /** Initial values of options, by provider type. */
  readonly suggested: Readonly<Record<string, Readonly<Record<string, unknown>>>>
}
