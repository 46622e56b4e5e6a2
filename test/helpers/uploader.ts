import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { z } from 'zod'
import { UploadError } from '../../src/errors.ts'
import { createCanceller } from '../../src/flow/cancellation.ts'
import { createNamedSlots } from '../../src/flow/slots.ts'
import { createPayloads, type Payload } from '../../src/payload/index.ts'
import { createSpool } from '../../src/payload/spool.ts'
import { defineProvider, type Stored, type Target, type UploadObject } from '../../src/providers/contract.ts'
import { createOwner } from '../../src/store/owners.ts'
import { openSqlite } from '../../src/store/sqlite.ts'
import { createBackground, type Uploader } from '../../src/uploader/app.ts'
import { chooseDestination, type DestinationSpec } from '../../src/uploader/destinations.ts'
import { createFinalizer } from '../../src/uploader/finalize.ts'
import type { Caller, Input } from '../../src/uploader/input.ts'
import { openDestinations } from '../../src/uploader/open.ts'
import { discard, type UploadRequest } from '../../src/uploader/request.ts'
import { type Uploaded, upload } from '../../src/uploader/upload.ts'
import { makeDirectory } from './directory.ts'
import { bytesOf } from './provider-contract.ts'
import { closed } from './stores.ts'

/** A target and what a destination may have beside it. */
export interface TestDestination {
  readonly target: Target
  readonly common?: Partial<DestinationSpec['common']>
}

export const CALLER: Caller = {
  ...{ name: 'loopback', admittedBy: 'loopback', sources: new Set(['form'] as const), roots: undefined },
  ...{ addresses: 'public', destinations: undefined },
}

export type Asked = Partial<Omit<UploadRequest, 'destination' | 'inputs'>> & { readonly to?: string }

/**
 * The uploader of one process over an SQLite database, with destinations `test/NAME` that do what the test says. The first one is
 * the default, and object keys are file names.
 *
 * @param directory of the database. Processes with the same one share it
 */
export async function openProcess(
  destinations: Readonly<Record<string, TestDestination>>,
  change: Partial<Uploader> = {},
  directory?: string,
) {
  const home = directory ?? (await makeDirectory())
  const specs = Object.entries(destinations).map(([name, { target, common }]): DestinationSpec => {
    const provider = defineProvider({ type: 'test', config: z.object({}), open: () => target })
    return { type: 'test', name, provider, options: {}, common: { ...common } }
  })
  const database = closed(openSqlite(join(home, 'store.db'), { patienceMs: 200 }))
  const owner = createOwner(database)
  const [ending, background] = [createCanceller(), createBackground()]
  const warnings: { readonly message: string; readonly details: Readonly<Record<string, unknown>> }[] = []
  const mask = (text: string) => text
  const warn = (message: string, details: object = {}) =>
    void warnings.push({ message, details: { ...details } })
  const env = { PATH: process.env['PATH'] }
  const finalizer = createFinalizer({ database, owner, ending: ending.signal, env, mask, warn })
  const spool = createSpool(join(home, 'spool'))
  const deps: Uploader = {
    ...{ database, owner, finalizer, background, spool, mask, warn, ending: ending.signal },
    payloads: createPayloads(0),
    slots: createNamedSlots(8, 100),
    fetches: createNamedSlots(8, 100),
    destinations: await openDestinations(specs, '{filename}{extname}', () => {}),
    ...{ defaultId: specs[0] && `test/${specs[0].name}`, leftOut: [], hooks: [] },
    sources: { fileSize: 1e9, urlTimeoutMs: 1000, isOwn: async () => false, env },
    limits: { timeoutMs: 10_000, retries: 0 },
    ...change,
  }
  finalizer.adopt(deps.hooks, upload => upload)
  onTestFinished(async () => {
    ending.abort(new Error('the test is over'))
    await owner.end()
  })
  const payloadOf = (content: string, name = 'a.txt'): Promise<Payload> =>
    deps.payloads.read(bodyOf(content), { name, spool, limit: 1e9 })
  return {
    ...{
      deps,
      database,
      owner,
      finalizer,
      background,
      warnings,
      ending,
      payloadOf,
      directory: home,
    },
    /** Uploads files, by name. */
    async send(files: Readonly<Record<string, string>>, { to = '', ...more }: Asked = {}) {
      const inputs: Input[] = []
      for (const [origin, content] of Object.entries(files))
        inputs.push({ kind: 'form', origin, payload: await payloadOf(content, origin) })
      const request: UploadRequest = {
        destination: chooseDestination(deps, { configName: to }),
        ...{ inputs, caller: CALLER, requestId: 'r1', baseUrl: 'http://127.0.0.1/' },
        signal: new AbortController().signal,
        ...more,
      }
      return upload(request, deps).finally(() => discard(inputs))
    },
  }
}

export type TestProcess = Awaited<ReturnType<typeof openProcess>>

async function* bodyOf(content: string) {
  yield Buffer.from(content)
}

/** A bucket in memory. Its puts wait while it is held, and fail as the test says. */
export function makeBucket() {
  const objects = new Map<string, string>()
  const puts: string[] = []
  const held: (() => void)[] = []
  let isHeld = false
  /** What becomes of the next puts. `lost`: they arrive, and their response is an error. */
  const next: ('refused' | 'lost')[] = []
  async function put(object: UploadObject): Promise<Stored> {
    const { key } = object
    puts.push(key)
    if (isHeld) await new Promise<void>(resolve => held.push(resolve))
    const fate = next.shift()
    if (fate !== 'refused') objects.set(key, String(await bytesOf(object)))
    if (fate) throw new UploadError('destination_failed', fate, { retryable: true, retryAfterS: 0 })
    return { url: `https://img.example/${key}` }
  }
  const remove = async (key: string) => void objects.delete(key)
  return {
    ...{ objects, puts, next, target: { put, remove, exists: async (key: string) => objects.has(key) } },
    hold() {
      isHeld = true
    },
    letGo() {
      isHeld = false
      for (const go of held.splice(0)) go()
    },
  }
}

/** The object key of each file, or why it was not stored. */
export const keysOf = ({ outcomes }: Uploaded) => outcomes.map(one => (one.ok ? one.key : one.error.message))
