import { UploadError } from '../errors.ts'
import { orAborted } from '../flow/cancellation.ts'
import { poll } from '../flow/poll.ts'
import { beginTimeLimit, type TimeLimit } from '../flow/time-limit.ts'
import type { Stored } from '../providers/contract.ts'
import { explain } from '../providers/shared/explain.ts'
import { type Claim, type Claimant, noteLook, retake } from '../store/claims.ts'
import type { QuotaRule, StoredFile } from '../store/contract.ts'
import { settleOpen } from '../store/objects.ts'
import type { NewUpload } from '../store/upload-rows.ts'
import { claimMore, finishLate } from '../store/uploads.ts'
import type { Uploader } from './app.ts'
import { keptUrl, keptUrlAgain } from './links.ts'
import type { Planned, WantedAt } from './plan.ts'
import { exists, mayHaveArrived, sendObject, settleUnknown, toObject } from './send.ts'

/** An upload that has begun. */
export interface Delivery {
  readonly deps: Uploader
  readonly upload: NewUpload
  readonly claimant: Claimant
  /** The quotas of the client. */
  readonly quotas: readonly QuotaRule[]
  /** The client's. It cancels files of which nothing has been sent. */
  readonly signal: AbortSignal
  /** Names of objects that a transfer may have written, or may still write. */
  readonly open: Set<string>
  /** Files that are stored although their input has failed. */
  readonly others: StoredFile[]
  /** Work for the background that begins when the upload has ended. Undefined: it has. */
  waiting: (() => Promise<unknown>)[] | undefined
}

/** The upload has ended. The process goes on with what is left of it. */
export function endDelivery(delivery: Delivery): void {
  const { claimant, deps, waiting = [] } = delivery
  delivery.waiting = undefined
  claimant.id = deps.owner.id
  for (const work of waiting) deps.background.run(work())
}

/** Does work in the background once the upload has ended. */
export function later({ waiting, deps }: Delivery, work: () => Promise<unknown>): void {
  if (waiting) waiting.push(work)
  else deps.background.run(work())
}

/** Frees an object of which nothing was sent, or that the destination has refused. */
export function release({ open, waiting, deps }: Delivery, name: string): void {
  open.delete(name)
  const { database, owner } = deps
  // Until the upload has ended, it frees what it has claimed itself.
  if (!waiting) deps.background.run(database.tx(db => settleOpen(db, owner.id, name, 'nothing')))
}

/** A file for one destination. */
export interface Part {
  readonly file: Planned
  readonly wanted: WantedAt
  /** What the upload may do with the object. */
  readonly claim: Claim
  /** Which one it is for the file. Once a part of the file is sent, the others get it even if the client has gone. */
  readonly role: 'destination' | 'fallback' | 'mirror'
}

/** A file is not stored because its object key is in use. The fallback is not tried then. */
export class ConflictError extends UploadError {}

/** A file that is being stored. */
interface Storing extends Part {
  readonly delivery: Delivery
  /** The time limit. It includes everything that the file waits for. */
  readonly limit: TimeLimit
}

type Mine = Extract<Claim, { is: 'mine' }>

/** Stores a file at one destination. @throws UploadError */
export async function deliverTo(part: Part, delivery: Delivery): Promise<StoredFile> {
  const { limits, ending } = delivery.deps
  const { claim, wanted } = part
  const limit = beginTimeLimit(limits.timeoutMs, ending, () => timedOut(wanted, limits.timeoutMs))
  const storing = { ...part, delivery, limit }
  try {
    // Most claims are for a new key, at which nothing can be.
    const found = claim.is === 'mine' && !claim.mayExist ? claim : await follow(storing)
    if (!('is' in found)) return found
    if (isGone(storing)) {
      release(delivery, found.name)
      throw delivery.signal.reason
    }
    return await put(found, storing)
  } finally {
    limit.end()
  }
}

/** Whether the client has gone before anything was sent. */
const isGone = ({ delivery, role }: Storing) => delivery.signal.aborted && role === 'destination'

/** Follows a claim until it leads to a stored object, or to a key that the file can be sent to. */
async function follow(storing: Storing): Promise<StoredFile | Mine> {
  const { wanted, role, delivery, limit } = storing
  const { claimant, deps } = delivery
  const claimAgain = () => claimMore(deps.database, claimant, wanted)
  const ask = async () => {
    if (isGone(storing)) throw delivery.signal.reason
    const next = await claimAgain()
    return next.is === 'wait' ? undefined : next
  }
  for (let claim = storing.claim; ; ) {
    if (claim.is === 'conflict') throw conflict(wanted, claim.key)
    if (claim.is === 'wait') claim = await poll(ask, limit.signal)
    else if (claim.is === 'same') {
      const same = claim
      // If the destination can't be asked now, for example because its credentials may only write, the database counts. If it can
      // never be asked, the file is stored again.
      const isThere =
        wanted.at.target.exists && (await look(same.key, storing).catch(() => !limit.signal.aborted))
      if (isThere) {
        const url = await keptUrlAgain(wanted.at, same, limit.signal)
        return toFile(storing, same.key, { url, deleteUrl: same.deleteUrl })
      }
      claim = await deps.database.tx(db => retake(db, claimant, same, wanted)) // it has vanished
    } else {
      if (role !== 'destination') delivery.open.add(claim.name)
      if (await isFree(claim, storing)) return claim
      claim = await claimAgain()
    }
  }
}

/** Whether a claimed key can be used: nothing that the server did not store is there, or it is replaced. */
async function isFree({ name, key, mayExist }: Mine, storing: Storing): Promise<boolean> {
  const { wanted, delivery } = storing
  const { claimant, deps } = delivery
  if (!mayExist || !wanted.at.target.exists) return true
  try {
    const isThere = await look(key, storing)
    const isReplaced = wanted.onConflict === 'replace' && key === wanted.key
    const found = isThere ? (isReplaced ? 'replaced' : 'foreign') : 'nothing'
    await deps.database.tx(db => noteLook(db, claimant, name, found))
    return found !== 'foreign'
  } catch (error) {
    release(delivery, name)
    throw error
  }
}

/** Whether an object is there. @throws UploadError if the destination can't tell */
async function look(key: string, { wanted: { at }, limit: { signal } }: Storing): Promise<boolean> {
  try {
    return await orAborted(exists(at, key, signal), signal)
  } catch (error) {
    throw explain(error, at.id, `look for "${key}"`)
  }
}

/** Sends an object, and retries transient failures until the time limit. */
async function put(claim: Mine, storing: Storing): Promise<StoredFile> {
  const { file, wanted, delivery, limit } = storing
  const { deps, open } = delivery
  open.add(claim.name)
  const attempts: Promise<Stored>[] = []
  try {
    const object = toObject(file.payload, claim.key)
    const stored = await sendObject(wanted.at, object, deps.limits.retries, limit, attempts)
    return toFile(storing, claim.key, { ...stored, url: keptUrl(wanted.at, claim.key, stored) })
  } catch (error) {
    const abandoned = limit.signal.aborted ? attempts.at(-1) : undefined
    if (abandoned || mayHaveArrived(error)) settleLater(claim, abandoned, storing)
    else release(delivery, claim.name)
    throw error
  }
}

/**
 * Has the process find out what became of a transfer, once the upload has ended.
 *
 * @param abandoned the transfer, if it goes on. It still reads the payload
 */
function settleLater({ name, key }: Mine, abandoned: Promise<Stored> | undefined, storing: Storing): void {
  const { wanted, file, role, delivery } = storing
  const { deps, upload } = delivery
  const dispose = file.payload.hold()
  later(delivery, async () => {
    try {
      const stored = await abandoned?.catch(() => undefined)
      if (!stored) return await settleUnknown(wanted.at, name, key, deps)
      const late = toFile(storing, key, { ...stored, url: keptUrl(wanted.at, key, stored) })
      await finishLate(deps.database, upload, late, role === 'mirror' ? [] : delivery.quotas)
    } finally {
      dispose()
    }
  })
}

/** @param url as the database keeps it */
function toFile(
  { file: { index, payload }, wanted, delivery: { upload } }: Storing,
  key: string,
  { url, deleteUrl }: { readonly url: string; readonly deleteUrl?: string | undefined },
): StoredFile {
  const { size, contentType, sha256 } = payload
  const { destination, location, expiresAt } = wanted
  return {
    ...{ index, origin: upload.origins[index] ?? '', url, key, size, contentType, sha256 },
    ...{ deleteUrl, expiresAt: expiresAt ?? undefined, location, destination },
  }
}

function conflict({ destination }: WantedAt, key: string): ConflictError {
  return new ConflictError(
    'destination_failed',
    `"${key}" already exists at ${destination}, and its onConflict is "error". Upload the file under another name.`,
  )
}

function timedOut({ at, key }: WantedAt, timeoutMs: number): UploadError {
  const used = [...(at.outgoing?.used ?? [])].map(label => `"${label}"`).join(' and ')
  const through = used && `, through the proxy ${used}`
  const message = `Could not store "${key}" at ${at.id} within ${timeoutMs / 1000} s${through}. Try again`
  return new UploadError('destination_timeout', `${message}, or raise limits.destinationTimeout.`)
}
