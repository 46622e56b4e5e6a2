import { expect } from 'vitest'
import { type Answer, download } from './form.ts'

/**
 * What every client needs of a success: one link for each file, in order, that fetches exactly its bytes, and items
 * that say the same.
 */
export async function expectStored(answer: Answer, files: readonly (string | Uint8Array)[]): Promise<void> {
  expect(answer.message).toBeUndefined()
  expect(answer.status).toBe(200)
  expect(answer.success).toBe(true)
  expect(answer.items.map(item => item.imgUrl)).toEqual(answer.result)
  expect(answer.items.map(item => item.index)).toEqual(files.map((_, index) => index))
  expect(answer).not.toHaveProperty('fullResult')
  await expectLinks(answer.result, files)
}

/** Links that need no escaping anywhere, each of which fetches the bytes of its file. */
export async function expectLinks(
  links: readonly string[],
  files: readonly (string | Uint8Array)[],
): Promise<void> {
  expect(links).toHaveLength(files.length)
  for (const [index, link] of links.entries()) {
    expect(link).toMatch(/^http:\/\/[^\s"'<>()[\]\\]+$/)
    expect(new URL(link).href).toBe(link)
    expect((await download(link)).equals(Buffer.from(files[index]!)), `bytes behind ${link}`).toBe(true)
  }
}

/** What every client needs of a failure: a list without holes, the same text under both names, no address inside it. */
export function expectFailure(answer: Answer, status: number, code: string): void {
  expect(answer).toMatchObject({ status, success: false, code })
  expect(answer.message).not.toBe('')
  expect(answer.msg).toBe(answer.message)
  expect(JSON.stringify([answer.message, answer.errors?.map(error => error.message)])).not.toMatch(/https?:/i)
  expect(answer.requestId).not.toBe('')
  expect(answer.headers.get('access-control-allow-origin')).toBe('*')
  expect(answer.result, 'clients take the first entry of an empty list for a link').not.toEqual([])
  for (const link of answer.result ?? []) expect(link).toMatch(/^http/)
}

/** The answer to an upload of the clipboard of a server without one. */
export function expectNoClipboard(answer: Answer): void {
  expectFailure(answer, 422, 'source_failed')
  expect(answer).not.toHaveProperty('result')
  expect(answer.errors).toMatchObject([{ index: 0, origin: 'clipboard' }])
}
