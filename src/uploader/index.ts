import type { NamedSlots } from '../flow/slots.ts'
import type { Payload, Payloads } from '../payload/index.ts'
import type { Spool } from '../payload/spool.ts'
import type { QuotaRule, QuotaWindow, Upload } from '../store/contract.ts'
import type { Database } from '../store/database.ts'
import type { Owner } from '../store/owners.ts'
import { readWindows } from '../store/quotas.ts'
import type { UploaderDeps } from './app.ts'
import { chooseDestination, type Destination, type DestinationChoice } from './destinations.ts'
import type { Caller, Input } from './input.ts'
import { findKnownFiles, type KnownRequest } from './known.ts'
import { assertRoom } from './quota.ts'
import { discard, spoolFor, type UploadRequest } from './request.ts'
import { isReadable } from './sources/index.ts'
import { type Uploaded, upload } from './upload.ts'

export type { Payload, Uploaded, UploadRequest }

/** Uploads inputs to destinations. It does not depend on HTTP. */
export interface Uploader {
  readonly destinations: readonly Destination[]
  readonly payloads: Payloads
  readonly database: Database
  readonly owner: Owner
  /** Requests that upload and requests that wait, by `provider/configName`. */
  readonly slots: NamedSlots
  /** @throws UploadError `unknown_destination`, `ambiguous_destination`, `destination_forbidden` */
  choose(choice: DestinationChoice, caller?: Pick<Caller, 'destinations'>): Destination
  /** Whether a local client could upload this path. Always false for remote clients: it reveals which files exist. */
  isReadable(path: string, caller: Caller): Promise<boolean>
  /** Where payloads for a destination are spooled. */
  spoolFor(destination: Destination): Spool
  /** See upload.ts. */
  upload(request: UploadRequest): Promise<Uploaded>
  /** See known.ts. */
  known(request: KnownRequest): Promise<readonly (string | undefined)[]>
  /**
   * Completes an upload whose post-upload steps are pending. Uploads nothing again.
   *
   * @param baseUrl of this server as the client sees it, with a final slash. Default: the one of the configuration
   * @returns the upload with its links; undefined if there is none with this ID
   * @throws FinalizationPending if a step fails again
   */
  finalize(id: string, baseUrl: string | undefined, signal: AbortSignal): Promise<Upload | undefined>
  /** The windows of quotas now, in their order. */
  quotaWindows(rules: readonly QuotaRule[]): Promise<QuotaWindow[]>
  /** Refuses a request before its body is read if a quota has no room for it. @throws UploadError `quota_exceeded` */
  assertRoom(rules: readonly QuotaRule[]): Promise<void>
  /** Disposes of the payloads of form inputs. */
  discard(inputs: readonly Input[]): Promise<void>
  /** @param graceMs time that running work gets to finish; default 0 */
  close(graceMs?: number): Promise<void>
}

export function createUploader(deps: UploaderDeps): Uploader {
  const { destinations, payloads, database, owner, slots, finalizer } = deps
  const quotaWindows = async (rules: readonly QuotaRule[]) =>
    rules.length === 0 ? [] : database.read(db => readWindows(db, rules))
  return {
    destinations,
    payloads,
    database,
    owner,
    slots,
    choose: (choice, caller) =>
      chooseDestination(destinations, deps.defaultId, choice, caller?.destinations, deps.leftOut),
    isReadable: (path, caller) => isReadable(path, caller, deps.sources),
    spoolFor: destination => spoolFor(destination, deps),
    upload: request => upload(request, deps),
    known: request => findKnownFiles(request, deps),
    async finalize(id, baseUrl, signal) {
      const ended = await finalizer.retry(id, baseUrl, signal)
      return ended && deps.withLinks(ended, baseUrl)
    },
    quotaWindows,
    assertRoom: async rules => assertRoom(await quotaWindows(rules)),
    discard,
    async close() {
      await Promise.allSettled(destinations.map(({ target }) => target.close?.()))
    },
  }
}
