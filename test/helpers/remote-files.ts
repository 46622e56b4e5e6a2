import { readdir } from 'node:fs/promises'
import { expect } from 'vitest'

/** Every path below a directory. */
export async function listFiles(directory: string): Promise<string[]> {
  return (await readdir(directory, { recursive: true })).sort()
}

export const isTemporary = (path: string) => path.includes('.upload-server-')

/** Ends what a provider was tested with, and fails if it has left temporary files. */
export async function closeWithoutRests(
  server: { readonly directory: string; close(): Promise<void> },
  ...others: readonly { close(): unknown }[]
): Promise<void> {
  for (const other of others) await other.close()
  const files = await listFiles(server.directory)
  await server.close()
  expect(files.filter(isTemporary)).toEqual([])
}
