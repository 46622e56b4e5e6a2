import { UploadError } from '../errors.ts'
import { orAborted } from '../flow/cancellation.ts'
import { poll } from '../flow/poll.ts'
import { beginTimeLimit, type TimeLimit } from '../flow/time-limit.ts'
import type { Stored } from '../providers/contract.ts'
import { explain } from '../providers/shared/explain.ts'
import {
  type Claim,
  type Claimant,
  claim as claimObject,
  noteAbsent,
  noteForeign,
  noteReplaced,
  retake,
  type Wanted,
} from '../store/claims.ts'
import type { QuotaRule, StoredFile } from '../store/contract.ts'
import type { NewUpload } from '../store/upload-rows.ts'
import { claimMore, finishLate } from '../store/uploads.ts'
import type { UploaderDeps } from './app.ts'
import { type Destination, idOf } from './destinations.ts'
import { keptUrl, keptUrlAgain } from './links.ts'
import type { Planned } from './plan.ts'
import { exists, mayHaveArrived, sendObject, settleUnknown, toObject } from './send.ts'

/** An upload that has begun. */
export interface Delivery {
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
  /** The deliveries of this upload by the names of their objects: equal files are sent once. */
  readonly sent: Map<string, Promise<FileAt>>
  /** Does work in the background once the upload has ended. */
  later(work: () => Promise<unknown>): void
  /** Frees an object of which nothing was sent, or that the destination has refused. */
  release(name: string): void
}

/** A file at a destination, `provider/configName`. */
export type FileAt = StoredFile & { readonly destination: string }

/** A file is not stored because its object key is in use. The fallback is not tried then. */
export class ConflictError extends UploadError {}

/** What stores a file at one destination. */
interface Storing {
  readonly destination: Destination
  readonly planned: Planned
  readonly wanted: Wanted
  readonly delivery: Delivery
  readonly deps: UploaderDeps
  /** The time limit. It includes everything that the file waits for. */
  readonly limit: TimeLimit
  /** Tells the equal files of the upload which object holds this one. */
  noteClaim(claim: Claim): Claim
}

/** Stores a file at one destination. @throws UploadError */
export function deliverTo(
  destination: Destination,
  planned: Planned,
  wanted: Wanted,
  claim: Claim,
  delivery: Delivery,
  deps: UploaderDeps,
): Promise<FileAt> {
  const { timeoutMs } = deps.limits
  const limit = beginTimeLimit(timeoutMs, deps.ending, () => timedOut(destination, wanted.key, timeoutMs))
  const noteClaim = (next: Claim) => {
    if (next.is === 'mine') {
      if (wanted !== planned.wanted[0]) delivery.open.add(next.name)
      delivery.sent.set(next.name, stored)
    }
    return next
  }
  const stored = store(claim, { destination, planned, wanted, delivery, deps, limit, noteClaim }).finally(
    limit.end,
  )
  noteClaim(claim)
  return stored
}

async function store(first: Claim, storing: Storing): Promise<FileAt> {
  // Most claims are for a new key, at which nothing can be.
  const found = first.is === 'mine' && !first.mayExist ? first : await follow(first, storing)
  if (!('is' in found)) return found
  if (isGone(storing)) {
    storing.delivery.release(found.name)
    throw storing.delivery.signal.reason
  }
  return put(found, storing)
}

/** Whether the client has gone before anything was sent. Once a part of the file is sent, its copies are sent, too. */
function isGone({ delivery, planned, wanted }: Storing): boolean {
  return delivery.signal.aborted && wanted === planned.wanted[0]
}

/** Follows a claim until it leads to a stored object, or to a key that the file can be sent to. */
async function follow(first: Claim, storing: Storing): Promise<FileAt | MyClaim> {
  const { destination, planned, wanted, delivery, deps, limit, noteClaim } = storing
  let mayReuse = wanted.dedupe
  const claimAgain = async () => {
    const here = { ...wanted, dedupe: mayReuse }
    return noteClaim(await claimMore(deps.database, delivery.claimant, here))
  }
  for (let claim = first; ; ) {
    if (claim.is === 'conflict') throw conflict(destination, claim.key)
    if (claim.is === 'twin') {
      const twin = await delivery.sent.get(claim.name)?.catch(() => undefined)
      if (twin) return { ...twin, index: planned.index, origin: planned.origin }
      // The other file could not be stored. One of those that are equal to it tries again.
      delivery.claimant.claimed.delete(claim.name)
      claim = await claimAgain()
    } else if (claim.is === 'wait') {
      const ask = async () => {
        if (isGone(storing)) throw delivery.signal.reason
        const next = await claimAgain()
        return next.is === 'wait' ? undefined : next
      }
      claim = await poll(ask, limit.signal)
    } else if (claim.is === 'same') {
      const { name, key, url, deleteUrl } = claim
      // If the destination can't be asked now, for example because its credentials may only write, the database counts. If it can
      // never be asked, the file is stored again.
      const isThere =
        destination.target.exists && (await look(key, storing).catch(() => !limit.signal.aborted))
      if (isThere) {
        const link = await keptUrlAgain(destination, { key, url }, limit.signal)
        return toFile(storing, key, link, deleteUrl)
      }
      // It has vanished. A file that reused it gets a key of its own.
      const reuses = mayReuse
      mayReuse = false
      claim = await deps.database.tx(async db => {
        if (reuses) return claimObject(db, delivery.claimant, { ...wanted, dedupe: false })
        const isMine = await retake(db, delivery.claimant, name, wanted)
        return isMine ? { is: 'mine', name, key, mayExist: false } : { is: 'wait' }
      })
      noteClaim(claim)
    } else if (await isFree(claim, storing)) return claim
    else claim = await claimAgain()
  }
}

type MyClaim = Extract<Claim, { is: 'mine' }>

/** Whether a claimed key can be used: nothing that the server did not store is there, or it is replaced. */
async function isFree({ name, key, mayExist }: MyClaim, storing: Storing): Promise<boolean> {
  const { destination, wanted, delivery, deps } = storing
  const { database } = deps
  const { claimant } = delivery
  if (!mayExist || !destination.target.exists) return true
  try {
    const isThere = await look(key, storing)
    if (!isThere) await database.tx(db => noteAbsent(db, claimant, name))
    else if (wanted.onConflict === 'replace' && key === wanted.key)
      await database.tx(db => noteReplaced(db, claimant, name))
    else {
      await database.tx(db => noteForeign(db, claimant, name))
      delivery.open.delete(name)
      return false
    }
    return true
  } catch (error) {
    delivery.release(name)
    throw error
  }
}

/** Whether an object is there. @throws UploadError if the destination can't tell */
async function look(key: string, { destination, limit: { signal } }: Storing): Promise<boolean> {
  try {
    return await orAborted(exists(destination, key, signal), signal)
  } catch (error) {
    throw explain(error, idOf(destination), `look for "${key}"`)
  }
}

/** Sends an object, and retries transient failures until the time limit. */
async function put({ name, key }: MyClaim, storing: Storing): Promise<FileAt> {
  const { destination, delivery, deps, limit } = storing
  const { payload } = storing.planned
  const object = toObject(payload, key)
  delivery.open.add(name)
  const toFileAt = (stored: Stored) =>
    toFile(storing, key, keptUrl(destination, key, stored), stored.deleteUrl)
  let putting: Promise<Stored> | undefined
  try {
    const sending = sendObject(destination, object, deps.limits.retries, limit, one => {
      putting = one
    })
    return toFileAt(await sending)
  } catch (error) {
    const abandoned = limit.signal.aborted ? putting : undefined
    if (!abandoned && !mayHaveArrived(error)) {
      delivery.release(name)
      throw error
    }
    // An abandoned transfer still reads the payload.
    const dispose = payload.hold()
    delivery.later(async () => {
      try {
        const stored = await abandoned?.catch(() => undefined)
        if (stored) await finishLate(deps.database, delivery.upload, toFileAt(stored), delivery.quotas)
        else await settleUnknown(destination, name, key, deps)
      } finally {
        dispose()
      }
    })
    throw error
  }
}

function toFile(
  { planned: { index, origin, payload }, wanted: { destination, location, expiresAt } }: Storing,
  key: string,
  url: string,
  deleteUrl: string | undefined,
): FileAt {
  const { size, contentType, sha256 } = payload
  const end = expiresAt ?? undefined
  return {
    ...{ index, origin, url, key, size, contentType, sha256 },
    ...{ deleteUrl, expiresAt: end, location, destination },
  }
}

function conflict(destination: Destination, key: string): ConflictError {
  return new ConflictError(
    'destination_failed',
    `"${key}" already exists at ${idOf(destination)}, and its onConflict is "error". Upload the file under another name.`,
  )
}

function timedOut(destination: Destination, key: string, timeoutMs: number): UploadError {
  const [id, time] = [idOf(destination), `within ${timeoutMs / 1000} s`]
  const { outgoing } = destination
  const used = [...(outgoing?.used ?? [])].map(label => `"${label}"`).join(' and ')
  const message = `Could not store "${key}" at ${id} ${time}${used && `, through the proxy ${used}`}. Try again`
  return new UploadError('destination_timeout', `${message}, or raise limits.destinationTimeout.`)
}
