import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, expect, type TestContext } from 'vitest'
import type { Stored, UploadObject } from '../providers/contract.ts'
import { expectCleanUrl, expectStored, given } from './expect.ts'
import { expectWords } from './far-end.ts'
import { withinMemory } from './memory.ts'
import { MIB, objectOf } from './objects.ts'
import type { Absence, ContractSetup, FarEnd } from './setup.ts'

/** One run of the suite: what its tests share. */
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
  const newUntrue = () => objectOf(fresh('untrue/a.bin'), randomBytes(1000))
  const never = (): AbortSignal => new AbortController().signal

  async function put(object: UploadObject, target = setupOf().target): Promise<Stored> {
    const stored = await target.put(object, never())
    shown.push(stored.url)
    expectCleanUrl(stored.url)
    return stored
  }

  const largeBytes = () => setupOf().largeBytes ?? 8 * MIB
  const putWatched = (object: UploadObject) => withinMemory(object.size, () => put(object))

  /** The error of a put that has to fail. */
  async function failureOf(promise: Promise<unknown>): Promise<unknown> {
    const error = await promise.then(
      () => expect.fail('this should have failed'),
      (reason: unknown) => reason,
    )
    expectWords(error, folder, setupOf().name)
    shown.push(error instanceof Error ? error.message : String(error))
    return error
  }

  /** `object` fails halfway; what was under its key before stays, and the next put works. */
  async function expectNothingHalf(key: string, fail: () => Promise<unknown>): Promise<void> {
    const hasNames = setupOf().without?.names === undefined
    const before = hasNames ? objectOf(key, randomBytes(3000)) : undefined
    const stored = before && (await put(before))
    await fail()
    if (stored) await expectStored(setupOf(), stored, await before.bytes())
    const after = objectOf(key, randomBytes(5000))
    await expectStored(setupOf(), await put(after), await after.bytes())
  }

  function farEndIn(context: TestContext): FarEnd {
    skipWithout(context, 'connection')
    return setupOf().farEnd ?? given(setupOf().forgeable, 'farEnd', 'connection')
  }

  /** Where answers can be forged; else the test is skipped. */
  function forgeableIn(context: TestContext): FarEnd {
    skipWithout(context, 'connection')
    skipWithout(context, 'http')
    return given(setupOf().forgeable, 'forgeable', 'http')
  }

  function skipWithout(context: TestContext, absence: Absence): void {
    const reason = setupOf().without?.[absence]
    if (reason !== undefined) leaveOut(context, `${absence}: ${reason}`)
  }

  /** What the protocol or vendor cannot do, no package would add: such a test is skipped with its reason, in CI, too. */
  function leaveOut(context: TestContext, what: string): never {
    return context.skip(`${name} leaves out ${what}`)
  }

  return {
    /** There once a test runs. */
    get setup(): ContractSetup {
      return setupOf()
    },
    /** What was shown to clients: addresses, and messages of errors. */
    shown,
    fresh,
    newUntrue,
    never,
    put,
    largeBytes,
    putWatched,
    failureOf,
    expectNothingHalf,
    farEndIn,
    forgeableIn,
    skipWithout,
    leaveOut,
  }
}

/** The server of a provider, started before the first test and ended after the last one. */
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
    context.skip(unavailable)
  })
  afterAll(async () => {
    if (unavailable !== undefined) return
    await setup.target.close?.()
    await setup.close()
  })
  return () => setup
}
