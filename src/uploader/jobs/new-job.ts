import { randomUUID } from 'node:crypto'
import type { Job } from '../../store/contract.ts'
import { type Destination, idOf } from '../delivery/destinations.ts'
import { type Caller, type Input, keptOrigin } from '../input.ts'

/** The part of a request that its job keeps. */
interface Asked {
  readonly caller: Pick<Caller, 'name'>
  readonly destination: Pick<Destination, 'type' | 'name'>
  readonly inputs: readonly Pick<Input, 'origin'>[]
  readonly requestId: string
}

/** The new job of a request. @param owner name of this process in the database */
export function newJob({ caller, destination, inputs, requestId }: Asked, owner: string, now: Date): Job {
  return {
    id: newJobId(now),
    state: 'uploading',
    createdAt: now.getTime(),
    owner,
    requestId,
    caller: caller.name,
    destination: idOf(destination),
    origins: inputs.map(({ origin }) => keptOrigin(origin)),
    files: [],
    steps: [],
    attempts: 0,
    problem: undefined,
  }
}

/**
 * A UUID of version 7: it begins with the time, so that entries of the same time are next to each other in an
 * index. 74 random bits make it unguessable.
 */
function newJobId(now: Date): string {
  const time = now.getTime().toString(16).padStart(12, '0')
  return `${time.slice(0, 8)}-${time.slice(8)}-7${randomUUID().slice(15)}`
}
