import type { Words } from './words-en.ts'

/** A destination that the visitor may use, as a request names it. */
export interface Choice {
  readonly picbed: string
  readonly configName: string
  readonly isDefault: boolean
  /** What a request may ask for of its pictures: `format`, `quality`, `size`, `strip`. */
  readonly pictures: readonly string[]
}

/** What the visitor may do. To those who may not upload the server names nothing. */
export type Visitor =
  | {
      /** `proxy`: something in front of the server sent the key, as no browser does that asks for a page. */
      readonly admittedBy: 'loopback' | 'key' | 'proxy' | 'anonymous'
      readonly choices: readonly Choice[]
      /** Whether the server tells what the visitor uploaded. */
      readonly hasHistory: boolean
    }
  | {
      readonly admittedBy?: never
      /** Why not, by its code and in the server's words. */
      readonly code: string
      readonly message: string
    }

export interface PageFacts {
  readonly words: Words
  /** Address of the server, without a final slash. */
  readonly base: string
  /** The way from the address of the page to the server's root: empty, or `../`. */
  readonly root: string
  /** Folder of script and style. */
  readonly version: string
  readonly visitor: Visitor
  /** What pictures can be converted to. */
  readonly pictureFormats: readonly string[]
  /** Bytes of the largest file. */
  readonly fileSize: number
}

/** What a request adds to the address to choose a destination. */
export function queryOf({ picbed, configName }: Pick<Choice, 'picbed' | 'configName'>): string {
  return new URLSearchParams({ picbed, configName }).toString()
}
