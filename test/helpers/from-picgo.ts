import { expect } from 'vitest'
import type { Provider } from '../../src/providers/contract.ts'
import { readPicGo } from '../../src/providers/shared/picgo-options.ts'

/** What an import makes of the options of a destination of PicGo or PicList. */
export function fromPicGo({ picgo, type }: Provider, options: Record<string, unknown>) {
  return readPicGo(options, picgo ?? expect.fail(`${type} reads no options of PicGo`))
}
