import type { ServerResponse } from 'node:http'
import { expect } from 'vitest'
import { serve } from '../uploader/sources/servers.ts'

/** A web server whose answers wait until they are let go, to keep uploads of its file under way. */
export interface Gate {
  /** Address of its file. */
  readonly url: string
  /** Until so many requests wait. */
  reached(count: number): Promise<void>
  /** Answers everything from now on with `the file`. */
  open(): void
}

export async function startGate(): Promise<Gate> {
  const waiting: ServerResponse[] = []
  let isOpen = false
  const { origin } = await serve((_req, res) => {
    if (isOpen) res.end('the file')
    else waiting.push(res)
  })
  return {
    url: `${origin}/file.txt`,
    async reached(count) {
      await expect.poll(() => waiting.length, { interval: 5 }).toBeGreaterThanOrEqual(count)
    },
    open() {
      isOpen = true
      for (const res of waiting.splice(0)) res.end('the file')
    },
  }
}
