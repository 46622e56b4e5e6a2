import type { LoadedConfig } from '../../config/load.ts'
import { findBase } from '../../server/running-server.ts'
import type { HistoryEntry } from '../../store/contract.ts'
import { splitId } from '../../uploader/destinations.ts'
import { withLinks } from '../../uploader/links.ts'
import { createUrlRewrite } from '../../uploader/url-rewrite.ts'

/** Entries with links instead of kept URLs. */
export async function withLinksOf(
  kept: readonly HistoryEntry[],
  config: LoadedConfig,
): Promise<HistoryEntry[]> {
  const rules = config.destinations.map(({ type, name, common }) => ({
    ...{ type, name },
    rewriteUrl: createUrlRewrite(common.urlRewrite ?? []),
  }))
  const bases = new Map<string, Promise<string>>()
  const baseOf = ({ destination, location }: HistoryEntry) => {
    const { type, name = '' } = splitId(destination)
    const base = bases.get(destination + location) ?? findBase(config, { type, name, location })
    bases.set(destination + location, base)
    return base
  }
  return Promise.all(kept.map(async entry => withLinks(entry, await baseOf(entry), rules)))
}
