import { expect, it } from 'vitest'
import { importOptional } from '../../src/packages/optional.ts'

it('says what to install when a package was left out', async () => {
  const name = '@nobody/left-out'
  const missing = importOptional(name, () => import(/* @vite-ignore */ name))
  await expect(missing).rejects.toMatchObject({
    code: 'destination_failed',
    retryable: false,
    message: expect.stringMatching(
      `^it needs the package "${name}", which is not installed\\. Run "npm install --omit=optional ${name}"`,
    ),
  })
})

it('gives what is there', async () => {
  expect(await importOptional('zod', () => import('zod'))).toHaveProperty('z')
})

it('hides no other error', async () => {
  await expect(importOptional('x', () => Promise.reject(new Error('broken')))).rejects.toThrow('broken')
})
