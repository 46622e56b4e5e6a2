import { randomUUID } from 'node:crypto'

/**
 * The ID of an upload, a UUID of version 7: it begins with the time, so uploads and the history are sorted by their IDs, and need
 * no index of times. 74 random bits make it unguessable.
 *
 * @param time milliseconds since the epoch
 */
export const newUploadId = (time: number): string => `${idPrefix(time)}-7${randomUUID().slice(15)}`

/** How IDs of a time begin. */
export function idPrefix(time: number): string {
  const digits = Math.max(Math.floor(time), 0).toString(16).padStart(12, '0')
  return `${digits.slice(0, 8)}-${digits.slice(8)}`
}

export const timeOf = (id: string): number => Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16)
