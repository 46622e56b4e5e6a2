import type { ServerResponse } from 'node:http'
import { expect } from 'vitest'
import { serve } from '../uploader/sources/servers.ts'

/** A web server whose answers wait until they are let go, to keep uploads of its file under way. */
export async function startGate() {
  const waiting: ServerResponse[] = []
  let isOpen = false
  const { origin } = await serve((_req, res) => {
    if (isOpen) res.end('the file')
    else waiting.push(res)
  })
  return {
    /** Address of its file. */
    url: `${origin}/file.txt`,
    /** Until so many requests wait. */
    async reached(count: number) {
      await expect.poll(() => waiting.length, { interval: 5 }).toBeGreaterThanOrEqual(count)
    },
    /** Answers everything from now on with `the file`. */
    open() {
      isOpen = true
      for (const res of waiting.splice(0)) res.end('the file')
    },
  }
}
