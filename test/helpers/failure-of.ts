import { expect } from 'vitest'
import { UploadError } from '../../src/errors.ts'

/** The error of something that has to fail with one of ours. */
export async function failureOf(promise: Promise<unknown> | undefined): Promise<UploadError> {
  const error = await Promise.resolve(promise).then(
    () => expect.fail('this should have failed'),
    (reason: unknown) => reason,
  )
  expect(error).toBeInstanceOf(UploadError)
  expect((error as UploadError).message).not.toMatch(/https?:\/\//)
  return error as UploadError
}
