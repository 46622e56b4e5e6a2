import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, expect, type TestContext } from 'vitest'
import type { Stored, UploadObject } from '../providers/contract.ts'
import { expectCleanUrl, expectStored, required } from './expect.ts'
import { expectMessage } from './far-end.ts'
import { bytesOf, objectOf } from './objects.ts'
import type { Absence, ContractSetup, FarEnd } from './setup.ts'

/** State and helpers that the tests of one suite have in common. */
export type Trial = ReturnType<typeof prepareTrial>

/** @param unavailable as in `describeProvider` */
export function prepareTrial(
  name: string,
  start: () => ContractSetup | Promise<ContractSetup>,
  unavailable?: string,
) {
  const folder = `contract-${randomBytes(4).toString('hex')}`
  const shown: string[] = []
  const setupOf = prepareServer(start, unavailable)

  const fresh = (file: string): string => `${folder}/${randomBytes(4).toString('hex')}/${file}`
  const newForged = () => objectOf(fresh('forged/a.bin'), randomBytes(1000))
  const never = (): AbortSignal => new AbortController().signal

  async function put(object: UploadObject, target = setupOf().target): Promise<Stored> {
    const stored = await target.put(object, never())
    shown.push(stored.url)
    expectCleanUrl(stored.url)
    return stored
  }

  /** Returns the error of an operation that must fail, after checking its message. */
  async function failureOf(promise: Promise<unknown>): Promise<unknown> {
    const error = await promise.then(
      () => expect.fail('this should have failed'),
      (reason: unknown) => reason,
    )
    expectMessage(error, folder, setupOf().name)
    shown.push(error instanceof Error ? error.message : String(error))
    return error
  }

  /** Expects that a failed put keeps the earlier object with its key, and that the next put works. */
  async function expectNoPartialObject(key: string, fail: () => Promise<unknown>): Promise<void> {
    const hasNames = setupOf().without?.names === undefined
    const before = hasNames ? objectOf(key, randomBytes(3000)) : undefined
    const stored = before && (await put(before))
    await fail()
    if (stored) await expectStored(setupOf(), stored, await bytesOf(before))
    const after = objectOf(key, randomBytes(5000))
    await expectStored(setupOf(), await put(after), await bytesOf(after))
  }

  function farEndIn(context: TestContext): FarEnd {
    skipWithout(context, 'connection')
    return setupOf().farEnd ?? required(setupOf().forgeable, 'farEnd', 'connection')
  }

  /** Returns the connection on which responses can be forged. Skips the test if there is none. */
  function forgeableIn(context: TestContext): FarEnd {
    skipWithout(context, 'connection')
    skipWithout(context, 'http')
    return required(setupOf().forgeable, 'forgeable', 'http')
  }

  function skipWithout(context: TestContext, absence: Absence): void {
    const reason = setupOf().without?.[absence]
    if (reason !== undefined) skipUnsupported(context, `${absence}: ${reason}`)
  }

  /** Skips a test of something that the protocol or vendor does not support, also in CI: no installed package would change that. */
  function skipUnsupported(context: TestContext, what: string): never {
    return context.skip(`${name} does not have ${what}`)
  }

  return {
    /** Available as soon as a test runs. */
    get setup(): ContractSetup {
      return setupOf()
    },
    /** All URLs and error messages that clients would see. */
    shown,
    fresh,
    newForged,
    never,
    put,
    failureOf,
    expectNoPartialObject,
    farEndIn,
    forgeableIn,
    skipWithout,
    skipUnsupported,
  }
}

/** Starts the setup before the first test and closes it after the last one. */
function prepareServer(
  start: () => ContractSetup | Promise<ContractSetup>,
  unavailable?: string,
): () => ContractSetup {
  let setup: ContractSetup

  beforeAll(async () => {
    if (unavailable === undefined) setup = await start()
  })
  beforeEach(context => {
    if (unavailable === undefined) return
    if (process.env['CI'] === 'true') throw new Error(unavailable)
    // CI installs what is missing; elsewhere a contributor need not have it.
    context.skip(unavailable)
  })
  afterAll(async () => {
    if (unavailable !== undefined) return
    await setup.target.close?.()
    await setup.close()
  })
  return () => setup
}
