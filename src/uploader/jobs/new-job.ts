import { randomUUID } from 'node:crypto'
import type { Job } from '../../store/contract.ts'
import { type Destination, idOf } from '../delivery/destinations.ts'
import { type Caller, type Input, keptOrigin } from '../input.ts'

/** What of a request its job tells. */
interface Asked {
  readonly caller: Pick<Caller, 'name'>
  readonly destination: Pick<Destination, 'type' | 'name'>
  readonly inputs: readonly Pick<Input, 'origin'>[]
  readonly requestId: string
}

/** The job of a request, as it begins. @param owner name of this process in the store */
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
 * A UUID of version 7: it begins with the time, so that the entries of one moment lie together in an index, and 74
 * random bits keep it from being guessed.
 */
function newJobId(now: Date): string {
  const time = now.getTime().toString(16).padStart(12, '0')
  return `${time.slice(0, 8)}-${time.slice(8)}-7${randomUUID().slice(15)}`
}
