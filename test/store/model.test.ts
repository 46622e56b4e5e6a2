import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { dropOwner } from '../../src/flow/owner.ts'
import { type Claim, type Claimant, noteLook, retake, type Wanted } from '../../src/store/claims.ts'
import type { Copy, QuotaRule, StoredFile } from '../../src/store/contract.ts'
import type { Database } from '../../src/store/database.ts'
import { objectName, settleOpen, takeOpen } from '../../src/store/objects.ts'
import { createOwner, type Owner } from '../../src/store/owners.ts'
import { reap } from '../../src/store/pending.ts'
import { noteRemoved, postpone, takeDue, takeForRemoval } from '../../src/store/removals.ts'
import { earlierRequest, REQUEST_KEPT_MS } from '../../src/store/requests.ts'
import { type Db, sql } from '../../src/store/sql.ts'
import type { NewUpload } from '../../src/store/upload-rows.ts'
import { begin, claimMore, finish, finishLate, type PlannedFile } from '../../src/store/uploads.ts'
import { claimsOf, databaseEngines, newUpload } from '../helpers/stores.ts'

/** Sequences of steps. test/chaos/model.test.ts has many. */
const SEQUENCES = Number(process.env['MODEL_SEQUENCES'] ?? 30)
const MOST_STEPS = 60

const PRIMARY = { destination: 'local/a', location: '/a/' }
const MIRROR = { destination: 'local/b', location: '/b/' }
const AMONG = [PRIMARY.destination, MIRROR.destination]
const HOUR_MS = 3_600_000
const QUOTA: QuotaRule = { client: 'ci', group: 'ci', files: 6, windowMs: HOUR_MS }
const FOREIGN = 'of somebody else'

/** A file of a request. */
interface Spec {
  readonly key: string
  readonly content: string
  readonly onConflict: Wanted['onConflict']
  readonly dedupe: boolean
  readonly livesMs: number | null
  readonly hasMirror: boolean
}

interface Request {
  readonly specs: readonly Spec[]
  readonly hasQuota: boolean
  readonly key: string | undefined
  readonly fingerprint: string
}

/** The delivery of one file to one destination. */
interface Part {
  readonly index: number
  readonly wanted: Wanted
  claim: Claim
  state: 'open' | 'stored' | 'failed'
  key?: string
  url?: string
}

type Put = 'ok' | 'refused' | 'lost' | 'arrived' | 'hangs' | 'cancelled'

/** A transfer without a known outcome, of a file that has failed. `arrives`: it is still under way. */
interface Late {
  readonly part: Part
  readonly name: string
  readonly key: string
  readonly arrives: boolean
}

/** An upload in a process. */
interface Run {
  readonly upload: NewUpload
  readonly request: Request
  readonly process: Process
  readonly claimant: Claimant
  readonly parts: readonly Part[]
  readonly open: Set<string>
  readonly looked: Set<string>
  readonly late: Late[]
  /** Start of the window of its quota. */
  readonly window: number
  hasEnded: boolean
  /** Of its response. */
  links: readonly Link[]
  /** Only in the history. */
  readonly lateLinks: Link[]
}

/** What a client was given. */
interface Link {
  readonly place: string
  readonly name: string
  readonly content: string
  readonly until: number | null
  /** Replaced or removed because somebody wanted that. */
  isVoid: boolean
}

interface Removal {
  readonly name: string
  readonly place: string
  readonly isByHand: boolean
  /** Undefined: it was not tried. */
  isDone?: boolean
}

interface Process {
  readonly database: Database
  owner: Owner
  isAlive: boolean
  /** Whether others see at once that it is dead. */
  isNoticed: boolean
  diedAt: number
  runs: Run[]
  late: { readonly run: Run; readonly late: Late }[]
  looking: { readonly name: string; readonly place: string }[]
  removals: Removal[]
}

interface World {
  now: number
  /** The destinations: location and key → content. */
  readonly there: Map<string, string>
  readonly processes: readonly Process[]
  readonly links: Link[]
  /** The latest attempt at each idempotency key. */
  readonly keyed: Map<string, Run>
  /** Files that were given to a client with a quota, by window. */
  readonly used: Map<number, number>
  readonly late: Map<number, number>
}

/** A database whose clock the test sets. */
function withClock(database: Database, world: { now: number }): Database {
  const at = (db: Db): Db => ({ ...db, now: async () => world.now, time: sql`cast(${world.now} as bigint)` })
  return {
    ...database,
    read: work => database.read(db => work(at(db))),
    tx: work => database.tx(db => work(at(db))),
  }
}

const windowOf = (now: number) => now - (now % HOUR_MS)
const count = (counts: Map<number, number>, window: number, more: number) =>
  counts.set(window, (counts.get(window) ?? 0) + more)

const isGood = (link: Link, { now }: World) => !link.isVoid && (link.until === null || link.until > now)

/** A link was given. */
function give(world: World, location: string, key: string, content: string, until: number | undefined): Link {
  const name = objectName(location, key)
  const link = { place: location + key, name, content, until: until ?? null, isVoid: false }
  world.links.push(link)
  return link
}

/** Whether an upload has just seen or stored an object there. */
const isInUse = ({ processes }: World, place: string) =>
  processes.some(({ runs }) =>
    runs.some(({ parts }) =>
      parts.some(({ state, wanted, key }) => state === 'stored' && wanted.location + key === place),
    ),
  )

function cancelLinks(world: World, name: string, content?: string): void {
  for (const link of world.links) if (link.name === name && link.content !== content) link.isVoid = true
}

/** A claim to replace ends the links to other contents. */
function noteClaim(world: World, run: Pick<Run, 'open'>, { claim, wanted }: Part): void {
  if (claim.is !== 'mine') return
  run.open.add(claim.name)
  if (wanted.onConflict === 'replace' && claim.name === objectName(wanted.location, wanted.key))
    cancelLinks(world, claim.name, wanted.sha256)
}

function planned(request: Request, time: number): PlannedFile[] {
  return request.specs.map((spec, index) => {
    const wanted = {
      ...{ key: spec.key, sha256: spec.content, onConflict: spec.onConflict, dedupe: spec.dedupe },
      isContentKey: spec.key.startsWith('hash'),
      expiresAt: spec.livesMs === null ? null : time + spec.livesMs,
    }
    const places = spec.hasMirror ? [PRIMARY, MIRROR] : [PRIMARY]
    return { index, size: 1, wanted: places.map(place => ({ ...wanted, ...place })) }
  })
}

async function beginRun(world: World, process: Process, asked: Request): Promise<void> {
  const { key, fingerprint } = asked
  const before = key === undefined ? undefined : world.keyed.get(key)
  const request = before?.request.fingerprint === fingerprint ? before.request : asked
  await process.owner.keepAlive()
  const { now } = world
  const requestKey = key === undefined ? undefined : { key, fingerprint, seed: 's' }
  const earlier = requestKey && (await process.database.read(db => earlierRequest(db, requestKey, now)))
  const files = planned(request, earlier?.first?.time ?? now)
  const upload = newUpload({
    ...{ createdAt: now, owner: process.owner.id, caller: 'ci', destination: 'local/a' },
    origins: request.specs.map(({ key }) => key),
  })
  const claimant: Claimant = { id: upload.id, claimed: new Set() }
  const quotas = request.hasQuota ? [QUOTA] : []
  const begun = await begin(process.database, upload, claimant, files, { request: requestKey, quotas })
  expect(begun.is === 'known', 'what an attempt is told before and in its transaction').toBe(
    earlier?.known !== undefined,
  )
  if (begun.is === 'known') {
    expect(begun.upload.id, 'a key leads to its latest attempt').toBe(before?.upload.id)
    return
  }
  if (before) expect(mayRepeat(before, world), 'a key has one outcome').toBe(true)
  const parts = files.flatMap(({ index, wanted: all }) =>
    all.flatMap((wanted): Part[] => {
      const claim = begun.claims.get(wanted)
      return claim ? [{ index, wanted, claim, state: 'open' }] : []
    }),
  )
  const run: Run = {
    ...{ upload, request, process, claimant, parts, open: new Set(), looked: new Set(), late: [] },
    ...{ window: windowOf(now), hasEnded: false, links: [], lateLinks: [] },
  }
  for (const part of parts) noteClaim(world, run, part)
  process.runs.push(run)
  if (key !== undefined) world.keyed.set(key, run)
}

/** Whether a new attempt at a request is right. */
function mayRepeat({ hasEnded, links, lateLinks, process, upload }: Run, world: World): boolean {
  if (upload.createdAt < world.now - REQUEST_KEPT_MS) return true
  if (hasEnded) return links.length === 0 || [...links, ...lateLinks].some(link => !isGood(link, world))
  const isDead = process.owner.id !== upload.owner || !process.isAlive
  return isDead
}

/** Does what `deliver` does next for an upload. */
async function deliverNext(world: World, run: Run, put: Put): Promise<void> {
  const part = run.parts.find(({ state }) => state === 'open')
  if (!part) return
  const { claim: current, wanted } = part
  const { claimant } = run
  const { database } = run.process
  const claimTo = (next: Claim) => {
    part.claim = next
    noteClaim(world, run, part)
  }
  const store = (key: string, url: string) => Object.assign(part, { state: 'stored', key, url })
  if (current.is === 'conflict') part.state = 'failed'
  else if (current.is === 'wait') claimTo(await claimMore(database, claimant, wanted))
  else if (current.is === 'same') {
    const { key, url } = current
    if (world.there.has(wanted.location + key)) store(key, url)
    else claimTo(await database.tx(db => retake(db, claimant, current, wanted)))
  } else if (current.mayExist && !run.looked.has(current.name)) {
    run.looked.add(current.name)
    const isReplaced = wanted.onConflict === 'replace' && current.key === wanted.key
    const isThere = world.there.has(wanted.location + current.key)
    const found = isThere ? (isReplaced ? 'replaced' : 'foreign') : 'nothing'
    await database.tx(db => noteLook(db, claimant, current.name, found))
    if (found === 'foreign') {
      run.open.delete(current.name)
      claimTo(await claimMore(database, claimant, wanted))
    }
  } else {
    const { name, key } = current
    const place = wanted.location + key
    if (put === 'ok' || put === 'arrived') world.there.set(place, wanted.sha256)
    if (put === 'ok') return void store(key, `https://x.example${place}`)
    part.state = 'failed'
    if (put === 'refused' || put === 'cancelled') run.open.delete(name)
    else run.late.push({ part, name, key, arrives: put === 'hangs' })
  }
}

function toFile(run: Run, { index, wanted, key = '', url = '' }: Part): StoredFile {
  const { location, destination, sha256, expiresAt } = wanted
  const origin = run.upload.origins[index] ?? ''
  const about = { index, origin, url, key, size: 1, contentType: 'image/png', sha256, location, destination }
  return { ...about, ...(expiresAt !== null && { expiresAt }) }
}

async function finishRun(world: World, run: Run): Promise<void> {
  if (run.parts.some(({ state }) => state === 'open')) return
  const { process, parts, request } = run
  const files = parts
    .filter(({ state, wanted }) => state === 'stored' && wanted.destination === PRIMARY.destination)
    .map((part): StoredFile => {
      const file = toFile(run, part)
      const copies = parts.filter(one => one.index === part.index && one !== part)
      return { ...file, mirrors: copies.map(copy => toCopy(run, copy)) }
    })
  // A copy of a file that its destination refused is in nobody's history.
  const isOf = (part: Part) => files.some(({ index }) => index === part.index)
  const failed = request.specs.flatMap((_, index) =>
    files.some(file => file.index === index) ? [] : [{ index, code: 'destination_failed', message: 'no' }],
  )
  const { claimed } = run.claimant
  const end = {
    state: failed.length > 0 ? 'failed' : 'done',
    files,
    failed,
    claimed,
    open: run.open,
  } as const
  const finished = await finish(process.database, run.upload, end)
  run.hasEnded = true
  run.claimant.id = process.owner.id
  run.links = finished.files.flatMap(({ index, location, key, expiresAt, mirrors = [] }) => {
    const content = request.specs[index]!.content
    const asked = parts.find(part => part.index === index)?.wanted.expiresAt ?? undefined
    const copies = mirrors.filter(copy => copy.key !== undefined)
    return [
      give(world, location, key, content, expiresAt),
      ...copies.map(copy => give(world, copy.location!, copy.key!, content, asked)),
    ]
  })
  if (request.hasQuota) count(world.used, run.window, finished.files.length)
  process.runs.splice(process.runs.indexOf(run), 1)
  for (const part of parts)
    if (part.state === 'stored' && !isOf(part) && part.claim.is === 'mine')
      run.late.push({
        part,
        name: objectName(part.wanted.location, part.key!),
        key: part.key!,
        arrives: true,
      })
  for (const late of run.late) process.late.push({ run, late })
}

function toCopy(run: Run, part: Part): Copy {
  const { destination, location, key, url } = toFile(run, part)
  return part.state === 'stored' ? { destination, location, key, url } : { destination, error: 'it failed' }
}

/** What `deliver` does once an upload has ended: a late transfer arrives, or the destination is asked. */
async function workLate(world: World, process: Process, isAsked: boolean): Promise<void> {
  const next = process.late.shift()
  if (!next) return
  const { run, late } = next
  const { location, sha256 } = late.part.wanted
  const place = location + late.key
  if (late.arrives) {
    world.there.set(place, sha256)
    const file = toFile(run, { ...late.part, key: late.key, url: `https://x.example${place}` })
    const isFile = late.part.wanted.destination === PRIMARY.destination
    const quotas = isFile && run.request.hasQuota ? [QUOTA] : []
    if (!(await finishLate(process.database, run.upload, file, quotas))) return
    run.lateLinks.push(give(world, location, late.key, sha256, file.expiresAt))
    if (quotas.length > 0) count(world.late, windowOf(world.now), 1)
  } else {
    const found = isAsked ? (world.there.has(place) ? 'something' : 'nothing') : 'unasked'
    await process.database.tx(db => settleOpen(db, process.owner.id, late.name, found))
  }
}

async function lookNext(world: World, process: Process, isAsked: boolean): Promise<void> {
  const next = process.looking.shift()
  if (!next) {
    const open = await process.database.tx(db => takeOpen(db, process.owner.id, AMONG, 5))
    process.looking = open.map(({ name, location, key }) => ({ name, place: location + key }))
    return
  }
  const found = isAsked ? (world.there.has(next.place) ? 'something' : 'nothing') : 'unasked'
  await process.database.tx(db => settleOpen(db, process.owner.id, next.name, found))
}

/** @param outcome `forgotten`: it is removed, and the destination does not say so */
async function removeNext(
  world: World,
  process: Process,
  outcome: 'ok' | 'refused' | 'forgotten',
): Promise<void> {
  const { database, owner } = process
  const [next] = process.removals
  if (!next) {
    const wanted = { owner: owner.id, among: AMONG, now: world.now, limit: 5, longestPauseMs: HOUR_MS }
    const due = await takeDue(database, wanted)
    process.removals = due.map(({ name, location, key }) => ({
      ...{ name, place: location + key, isByHand: false },
    }))
  } else if (next.isDone === undefined) {
    next.isDone = outcome === 'ok'
    const isGone = outcome === 'ok' || (outcome === 'forgotten' && !isInUse(world, next.place))
    if (isGone) world.there.delete(next.place)
  } else {
    process.removals.shift()
    if (next.isDone) await noteRemoved(database, [next.name])
    else if (next.isByHand) await postpone(database, owner.id, next.name)
    else await postpone(database, owner.id, next.name, { retryAt: world.now + 60_000, problem: 'it is down' })
  }
}

async function removeByHand(world: World, process: Process, n: number): Promise<void> {
  const link = world.links[n % Math.max(world.links.length, 1)]
  if (!link || link.content === FOREIGN) return
  const { database, owner } = process
  const taken = await database.tx(db => takeForRemoval(db, owner.id, [link.name]))
  if (!taken.has(link.name)) return
  cancelLinks(world, link.name)
  process.removals.push({ name: link.name, place: link.place, isByHand: true })
}

function die(world: World, process: Process, isNoticed: boolean): void {
  for (const { late } of process.runs.flatMap(run => run.late.map(late => ({ late }))))
    if (late.arrives) world.there.set(late.part.wanted.location + late.key, late.part.wanted.sha256)
  for (const { late } of process.late)
    if (late.arrives) world.there.set(late.part.wanted.location + late.key, late.part.wanted.sha256)
  if (isNoticed) dropOwner(process.owner.id)
  Object.assign(process, { isAlive: false, isNoticed, diedAt: world.now })
  Object.assign(process, { runs: [], late: [], looking: [], removals: [] })
}

async function restart(process: Process): Promise<void> {
  process.owner = createOwner(process.database)
  await process.owner.beat()
  process.isAlive = true
}

async function pass(world: World, ms: number): Promise<void> {
  const isBusy = world.processes.some(({ runs }) => runs.length > 0)
  if (isBusy && ms > REQUEST_KEPT_MS) return // no upload takes a day
  world.now += ms
  for (const { isAlive, owner } of world.processes) if (isAlive) await owner.beat()
}

/** The sentences that hold after every step. */
function assertSound(world: World): void {
  for (const link of world.links)
    if (isGood(link, world))
      expect([link.place, world.there.get(link.place)], 'what is promised').toEqual([
        link.place,
        link.content,
      ])
  for (const files of world.used.values()) expect(files, 'files of a quota').toBeLessThanOrEqual(QUOTA.files!)
}

/** Every process dies, and a new one cleans up. */
async function assertClean(world: World): Promise<void> {
  for (const process of world.processes) if (process.isAlive) die(world, process, true)
  world.now += 20 * 60_000
  const last = world.processes[0]!
  await restart(last)
  await reap(last.database, () => {})
  const untilNothing = async (work: () => Promise<void>, list: () => readonly unknown[]) => {
    for (await work(); list().length > 0; await work()) while (list().length > 0) await work()
  }
  await untilNothing(
    () => lookNext(world, last, true),
    () => last.looking,
  )
  await untilNothing(
    () => removeNext(world, last, 'ok'),
    () => last.removals,
  )
  assertSound(world)
  const rows = await last.database.read(db =>
    db.all(sql`select name, state, holder from objects where state = 'storing' and holder <> ''
      union all select id, state, owner from uploads where state = 'uploading'`),
  )
  expect(rows, 'claims of the dead').toEqual([])
  const quotas = await last.database.read(db =>
    db.all<{ starts_at: number; files: number }>(sql`select starts_at, files from quotas where files > 0`),
  )
  const expected = new Map(world.used)
  for (const [window, files] of world.late) count(expected, window, files)
  const used = quotas.map(({ starts_at, files }) => [starts_at, files])
  expect(used.sort(), 'what the quotas say').toEqual([...expected].filter(([, files]) => files > 0).sort())
  const specs = KEYS.flatMap(key => CONTENTS.map(content => ({ ...SPEC, key, content })))
  const asked = { specs, hasQuota: false, key: undefined, fingerprint: '' }
  const claimant = { id: 'last', claimed: new Set<string>() }
  const upload = newUpload({ id: 'last', createdAt: world.now, owner: last.owner.id })
  const files = planned(asked, world.now)
  const begun = await begin(last.database, upload, claimant, files, {})
  expect(JSON.stringify(claimsOf(begun, files)), 'nobody waits for the dead').not.toContain('wait')
}

const KEYS = ['a.png', 'A.png', 'a-2.png', 'hash.png']
const CONTENTS = ['1', '2', '3']
const SPEC: Spec = {
  ...{ key: '', content: '', onConflict: 'rename', dedupe: false, livesMs: null, hasMirror: false },
}

class Step implements fc.AsyncCommand<object, World> {
  readonly #name: string
  readonly #run: (world: World) => unknown
  constructor(name: string, run: (world: World) => unknown) {
    this.#name = name
    this.#run = run
  }
  check = () => true
  async run(_: object, world: World): Promise<void> {
    await this.#run(world)
    assertSound(world)
  }
  toString = () => this.#name
}

/** Steps of a process that lives. */
function step<T>(
  name: string,
  value: fc.Arbitrary<T>,
  run: (world: World, process: Process, value: T) => unknown,
): fc.Arbitrary<Step> {
  return fc.tuple(fc.nat(2), value).map(
    ([n, one]) =>
      new Step(`${name} ${n} ${JSON.stringify(one) ?? ''}`, world => {
        const process = world.processes[n]!
        return process.isAlive ? run(world, process, one) : undefined
      }),
  )
}

const spec: fc.Arbitrary<Spec> = fc.record({
  key: fc.constantFrom(...KEYS),
  content: fc.constantFrom(...CONTENTS),
  onConflict: fc.constantFrom('rename', 'rename', 'replace', 'error'),
  dedupe: fc.boolean(),
  livesMs: fc.constantFrom(null, 30_000, 2 * HOUR_MS),
  hasMirror: fc.boolean(),
})
const request: fc.Arbitrary<Request> = fc.record({
  specs: fc.array(spec, { minLength: 1, maxLength: 3 }),
  hasQuota: fc.boolean(),
  key: fc.constantFrom(undefined, 'k1', 'k2'),
  fingerprint: fc.constantFrom('f', 'f', 'f', 'g'),
})
const put = fc.constantFrom<Put[]>('ok', 'ok', 'ok', 'ok', 'refused', 'lost', 'arrived', 'hangs', 'cancelled')
const runOf = ({ runs }: Process, n: number) => runs[n % Math.max(runs.length, 1)]

/** Several steps of a delivery at once: most are undisturbed. */
async function deliverSome(world: World, process: Process, [n, times, how]: readonly [number, number, Put]) {
  const run = runOf(process, n)
  if (!run) return
  for (let left = times; left > 0; left--) await deliverNext(world, run, left === 1 ? how : 'ok')
}

async function uploadWhole(world: World, process: Process, asked: Request): Promise<void> {
  const before = process.runs.length
  await beginRun(world, process, asked)
  const run = process.runs[before]
  for (let n = 0; run && n < 20; n++) await deliverNext(world, run, 'ok')
  if (run) await finishRun(world, run)
}

async function vanish(world: World, n: number): Promise<void> {
  const link = world.links[n % Math.max(world.links.length, 1)]
  if (!link || isInUse(world, link.place)) return
  cancelLinks(world, link.name)
  world.there.delete(link.place)
}

const ofWorld = <T>(name: string, value: fc.Arbitrary<T>, run: (world: World, value: T) => unknown) =>
  value.map(one => new Step(`${name} ${one}`, world => run(world, one)))
const often = (weight: number, arbitrary: fc.Arbitrary<Step>) => ({ weight, arbitrary })

const anyStep = fc.oneof(
  often(6, step('upload', request, uploadWhole)),
  often(6, step('begin', request, beginRun)),
  often(9, step('deliver', fc.tuple(fc.nat(3), fc.integer({ min: 1, max: 6 }), put), deliverSome)),
  often(
    6,
    step('finish', fc.nat(3), (world, process, n) => {
      const run = runOf(process, n)
      return run && finishRun(world, run)
    }),
  ),
  often(4, step('remove', fc.constantFrom('ok', 'ok', 'refused', 'forgotten'), removeNext)),
  often(3, step('remove by hand', fc.nat(20), removeByHand)),
  often(2, step('late', fc.boolean(), workLate)),
  often(3, step('look', fc.constantFrom(true, true, false), lookNext)),
  often(
    1,
    step('reap', fc.constant(undefined), (_, { database }) => reap(database, () => {})),
  ),
  often(2, step('kill', fc.boolean(), die)),
  often(
    3,
    ofWorld('restart', fc.nat(2), async ({ processes }, n) => {
      if (!processes[n]?.isAlive) await restart(processes[n]!)
    }),
  ),
  often(3, ofWorld('pass', fc.constantFrom(1000, 40_000, 11 * 60_000, HOUR_MS, 25 * HOUR_MS), pass)),
  often(1, ofWorld('vanish', fc.nat(20), vanish)),
)
const steps = fc.commands([anyStep], { maxCommands: MOST_STEPS, size: 'max' })

describe.each(databaseEngines())(
  'three processes in %s that upload, die, look, remove and repeat',
  (_name, make) => {
    it('keep every promise', { timeout: 60 * 60_000 }, async context => {
      const place = await make(context)
      const databases = [place.open(), place.open(), place.open()]
      const newWorld = async (foreign: readonly string[]): Promise<World> => {
        await databases[0]!.tx(async db => {
          for (const table of ['owners', 'uploads', 'requests', 'objects', 'files', 'quotas'])
            await db.run({ text: `delete from ${table}`, values: [] })
        })
        const world: World = {
          ...{ now: 1_800_000_000_000, there: new Map(), processes: [], links: [] },
          ...{ keyed: new Map(), used: new Map(), late: new Map() },
        }
        const processes = databases.map((one): Process => {
          const database = withClock(one, world)
          return {
            ...{ database, owner: createOwner(database), isAlive: true, isNoticed: false, diedAt: 0 },
            ...{ runs: [], late: [], looking: [], removals: [] },
          }
        })
        for (const { owner } of processes) await owner.beat()
        for (const key of foreign) {
          world.there.set(PRIMARY.location + key, FOREIGN)
          give(world, PRIMARY.location, key, FOREIGN, undefined)
        }
        return Object.assign(world, { processes })
      }
      const property = fc.asyncProperty(fc.subarray(['a.png', 'a-2.png']), steps, async (foreign, some) => {
        const world = await newWorld(foreign)
        await fc.asyncModelRun(() => ({ model: {}, real: world }), some)
        await assertClean(world)
      })
      const seed = process.env['MODEL_SEED']
      await fc.assert(property, { numRuns: SEQUENCES, ...(seed && { seed: Number(seed) }) })
    })
  },
)
