import { describe, expect, it, type TestContext } from 'vitest'
import type { Claimant } from '../../src/store/claims.ts'
import type { FailedFile, QuotaRule, StoredFile } from '../../src/store/contract.ts'
import type { Database } from '../../src/store/database.ts'
import { findFiles, pruneFiles } from '../../src/store/history.ts'
import { objectName, settleOpen, takeOpen } from '../../src/store/objects.ts'
import { advance, dueUploads, pendingUploads, reap, takeStored } from '../../src/store/pending.ts'
import { currentQuotas, readWindows } from '../../src/store/quotas.ts'
import { noteRemoved, takeDue } from '../../src/store/removals.ts'
import { earlierRequest, REQUEST_KEPT_MS } from '../../src/store/requests.ts'
import { sql } from '../../src/store/sql.ts'
import { type NewUpload, readUpload } from '../../src/store/upload-rows.ts'
import { begin, claimMore, finish, finishLate } from '../../src/store/uploads.ts'
import { databaseEngines, kill, newFile, newOwnerIn, newUpload } from '../helpers/stores.ts'

const AT = { destination: 'local/blog', location: '/srv/blog/' }
const OBJECT = objectName(AT.location, 'a.png')
const DAY_MS = 24 * 3_600_000
const LATER = Date.now() + DAY_MS
const QUOTA: QuotaRule = { client: 'ci', group: 'ci', windowMs: 1000 * DAY_MS, files: 3, bytes: 100 }
const FAILED: FailedFile = { index: 0, code: 'destination_failed', message: 'it is down' }

interface Asked {
  readonly owner: string
  /** An object key for each file. Its content is the key. */
  readonly keys?: readonly string[]
  readonly sizes?: readonly number[]
  readonly key?: string
  readonly fingerprint?: string
  readonly quotas?: readonly QuotaRule[]
  readonly createdAt?: number
  readonly expiresAt?: number
}

async function start(database: Database, asked: Asked) {
  const {
    owner,
    keys = ['a.png'],
    sizes = [],
    key,
    fingerprint = 'f',
    quotas = [],
    createdAt = Date.now(),
  } = asked
  const upload = newUpload({ owner, createdAt })
  const claimant: Claimant = { id: upload.id, claimed: new Set() }
  const wanted = keys.map(one => ({
    ...({ ...AT, key: one, sha256: one, onConflict: 'rename', isContentKey: false, dedupe: false } as const),
    expiresAt: asked.expiresAt ?? null,
  }))
  const files = wanted.map((one, index) => ({ index, size: sizes[index] ?? 1, wanted: [one] }))
  const request = key === undefined ? undefined : { key, fingerprint, seed: `seed of ${upload.id}` }
  const begun = await begin(database, upload, claimant, files, { request, quotas })
  return { upload, claimant, wanted, begun }
}

const stored = (key = 'a.png', change: Partial<StoredFile> = {}) =>
  newFile({ key, sha256: key, size: 1, ...change })

const done = (database: Database, upload: NewUpload, ...files: StoredFile[]) =>
  finish(database, upload, { state: 'done', files, failed: [] })
const failed = (database: Database, upload: NewUpload, left: readonly string[] = []) =>
  finish(database, upload, { state: 'failed', files: [], failed: [FAILED], open: new Set(left) })
const read = (database: Database, { id }: NewUpload) => database.read(db => readUpload(db, id))
const history = (database: Database) => database.read(db => findFiles(db, { limit: 100 }))
const windows = (database: Database, ...rules: QuotaRule[]) => database.read(db => readWindows(db, rules))
const reapAll = async (database: Database) => {
  const reported: string[] = []
  await reap(database, ({ id }) => reported.push(id))
  return reported
}

describe.each(databaseEngines())('uploads in %s', (_name, make) => {
  const setUp = async (context: TestContext) => {
    const place = await make(context)
    const database = place.open()
    const [me, other] = [await newOwnerIn(database), await newOwnerIn(database)]
    return { place, database, me: me.id, other: other.id }
  }

  it('are kept as they were written, also when the database is closed and opened', async context => {
    const { place, database, me } = await setUp(context)
    const { upload } = await start(database, { owner: me })
    const begun = { ...upload, state: 'uploading', files: [], failed: [], steps: [], attempts: 0 }
    expect(await read(database, upload)).toEqual({ ...begun, endedAt: undefined, problem: undefined })
    const mirrors = [{ destination: 'local/mirror', error: 'it is down' }]
    await done(database, upload, stored('a.png', { mirrors }))
    const again = place.open()
    expect(await read(again, upload)).toMatchObject({ state: 'done', files: [{ key: 'a.png', mirrors }] })
    expect(await history(again)).toMatchObject([
      { key: 'a.png', jobId: upload.id, destination: AT.destination },
    ])
    expect(await database.read(db => readUpload(db, 'other'))).toBeUndefined()
  })

  it('are written once, also when the end is written again because its response was lost', async context => {
    const { database, me } = await setUp(context)
    const { upload } = await start(database, { owner: me, quotas: [QUOTA], keys: ['a.png', 'b.png'] })
    for (let n = 0; n < 2; n++) expect((await done(database, upload, stored())).lost).toEqual([])
    expect(await history(database)).toHaveLength(1)
    expect(await windows(database, QUOTA)).toMatchObject([{ files: 1, bytes: 1 }])
  })

  it('are written with a copy at each mirror, and a copy of files that have failed', async context => {
    const { database, me } = await setUp(context)
    const { upload, claimant } = await start(database, { owner: me, keys: ['a.png', 'b.png'] })
    const at = { destination: 'local/m', location: '/m/' }
    for (const key of ['a.png', 'c.png'])
      await claimMore(database, claimant, {
        ...{ ...at, key, sha256: key, onConflict: 'rename', isContentKey: false },
        ...{ dedupe: false, expiresAt: LATER },
      })
    const copy = { ...at, key: 'a.png', url: 'u', expiresAt: LATER }
    const gone = { ...at, key: 'gone.png', url: 'u' }
    const { files } = await finish(database, upload, {
      ...{
        state: 'failed',
        files: [stored('a.png', { mirrors: [copy, gone] })],
        failed: [{ ...FAILED, index: 1 }],
      },
      others: [stored('b.png', { index: 1 })],
    })
    expect(files[0]?.mirrors).toEqual([copy, { destination: at.destination, error: expect.any(String) }])
    const entries = (await history(database)).map(({ destination, key, expiresAt }) => [
      destination,
      key,
      expiresAt,
    ])
    expect(entries.sort()).toEqual([
      [AT.destination, 'a.png', undefined],
      [AT.destination, 'b.png', undefined],
      [at.destination, 'a.png', LATER],
    ])
  })

  describe('with an idempotency key', () => {
    it('get it once of many at the same time', async context => {
      const { place, database, me, other } = await setUp(context)
      const servers = [database, place.open()]
      const owners = [me, other]
      const all = await Promise.all(
        [0, 1, 0, 1].map(n => start(servers[n]!, { owner: owners[n]!, key: 'k', keys: [`${n}.png`] })),
      )
      expect(all.map(({ begun }) => begun.is).sort()).toEqual(['begun', 'known', 'known', 'known'])
      const first = all.find(({ begun }) => begun.is === 'begun')!
      for (const { begun, upload } of all.filter(one => one !== first)) {
        expect(begun).toMatchObject({ upload: { id: first.upload.id, state: 'uploading' }, fingerprint: 'f' })
        expect(await read(database, upload)).toBeUndefined()
      }
    })

    type Case = (database: Database, upload: NewUpload, owner: string) => Promise<unknown>
    const expire: Case = async (database, upload) => {
      await done(database, upload, stored('a.png', { expiresAt: 10 }))
    }
    it.for<[what: string, isFree: boolean, isFreeForAnother: boolean, happens: Case]>([
      ['is under way', false, false, async () => {}],
      ['is stored', false, false, (database, upload) => done(database, upload, stored())],
      ['has failed', true, true, (database, upload) => failed(database, upload)],
      [
        'has failed in part',
        ...([false, false] as const),
        (database, upload) =>
          finish(database, upload, { state: 'failed', files: [stored()], failed: [FAILED] }),
      ],
      ['was of a process that has ended', true, false, (database, _, owner) => kill(database, owner)],
      [
        'was of a process that has ended, and that is known',
        ...([true, true] as const),
        async (database, _, owner) => {
          await kill(database, owner)
          await reapAll(database)
        },
      ],
      ['has lost its file since: it has expired', true, false, expire],
      [
        'has lost its file since: it was removed',
        ...([true, false] as const),
        async (database, upload, owner) => {
          await expire(database, upload, owner)
          const wanted = { owner, among: [AT.destination], now: 20, limit: 9, longestPauseMs: 1000 }
          const due = await takeDue(database, wanted)
          await noteRemoved(
            database,
            due.map(({ name }) => name),
          )
        },
      ],
      [
        'is not known any more',
        ...([true, true] as const),
        (database, upload) => database.tx(db => db.run(sql`delete from uploads where id = ${upload.id}`)),
      ],
    ])('repeat one that %s: the key is free: %s, for another request: %s', async (row, context) => {
      const [what, isFree, isFreeForAnother, happens] = row
      for (const fingerprint of ['f', 'g']) {
        const { database, me, other } = await setUp(context)
        const { upload } = await start(database, { owner: other, key: 'k', expiresAt: 10 })
        await happens(database, upload, other)
        const free = fingerprint === 'f' ? isFree : isFreeForAnother
        const request = { key: 'k', fingerprint }
        const earlier = await database.read(db => earlierRequest(db, request, Date.now()))
        expect(earlier?.known?.upload.id).toBe(free ? undefined : upload.id)
        // The first attempt says how its repetition names the objects, unless that was stored and is gone.
        if (free && fingerprint === 'f') expect(earlier !== undefined).toBe(!what.startsWith('has lost'))
        const { begun } = await start(database, { owner: me, key: 'k', fingerprint })
        expect(begun.is).toBe(free ? 'begun' : 'known')
        if (begun.is === 'known') expect(begun).toMatchObject({ upload: { id: upload.id }, fingerprint: 'f' })
      }
    })

    it('get a key that is older than a day', async context => {
      const { database, me } = await setUp(context)
      const createdAt = Date.now() - REQUEST_KEPT_MS - 1
      const { upload } = await start(database, { owner: me, key: 'k', createdAt })
      await done(database, upload, stored())
      const request = { key: 'k', fingerprint: 'f' }
      expect(await database.read(db => earlierRequest(db, request, Date.now()))).toBeUndefined()
      expect((await start(database, { owner: me, key: 'k' })).begun.is).toBe('begun')
    })

    it('get the objects, the seed and the quota of the attempt that they repeat', async context => {
      const { database, me, other } = await setUp(context)
      const asked = { key: 'k', quotas: [QUOTA] }
      const createdAt = Date.now() - 60_000
      const first = await start(database, { ...asked, owner: other, createdAt })
      await kill(database, other)
      const request = { key: 'k', fingerprint: 'f' }
      const earlier = () => database.read(db => earlierRequest(db, request, Date.now()))
      expect(await earlier()).toMatchObject({
        ...{ time: createdAt, seed: `seed of ${first.upload.id}`, known: undefined },
      })
      const { begun, upload } = await start(database, { ...asked, owner: me })
      expect(begun).toMatchObject({ files: [{ objects: [{ claim: { is: 'mine', key: 'a.png' } }] }] })
      expect(await windows(database, QUOTA)).toMatchObject([{ files: 1 }])
      expect(await read(database, first.upload)).toMatchObject({ state: 'failed' })
      expect(await earlier(), 'it is the time in object keys').toMatchObject({ time: createdAt })
      await done(database, upload, stored())
      expect((await done(database, first.upload, stored())).lost, 'the first one has only paused').toEqual([])
    })

    it('do not get an object that the attempt has claimed for a file of another name', async context => {
      const { database, me, other } = await setUp(context)
      const { claimant, wanted } = await start(database, { owner: other, key: 'k', keys: ['b.png'] })
      await claimMore(database, claimant, { ...wanted[0]!, key: 'x.png', sha256: 'a.png' })
      await kill(database, other)
      const { begun } = await start(database, { owner: me, key: 'k' })
      expect(begun).toMatchObject({ files: [{ objects: [{ claim: { is: 'mine', key: 'a.png' } }] }] })
    })

    it('do not free what the attempt may have stored that they do not use', async context => {
      const { database, me, other } = await setUp(context)
      await start(database, { owner: other, key: 'k', keys: ['a.png', 'fallback.png'] })
      await kill(database, other)
      const { upload } = await start(database, { owner: me, key: 'k' })
      await done(database, upload, stored())
      const open = await database.tx(db => takeOpen(db, me, [AT.destination], 9))
      expect(open.map(({ key }) => key)).toEqual(['fallback.png'])
    })
  })

  describe('with a quota', () => {
    it('take what fits, in order, and nothing beyond', async context => {
      const { database, me } = await setUp(context)
      const keys = ['a', 'b', 'c', 'd']
      const { begun } = await start(database, { owner: me, keys, sizes: [60, 50, 40, 1], quotas: [QUOTA] })
      const full = { full: { rule: QUOTA, files: 1, bytes: 60 } }
      const got = 'files' in begun ? begun.files : []
      expect(got).toMatchObject([
        { objects: [{}] },
        full,
        { objects: [{}] },
        { full: { files: 2, bytes: 100 } },
      ])
      expect(await windows(database, QUOTA)).toMatchObject([{ files: 2, bytes: 100 }])
    })

    it('never exceed it on several servers at once, and nothing that fits is refused', async context => {
      const { place, database, me, other } = await setUp(context)
      const servers = [database, place.open()]
      const begin20 = Array.from({ length: 20 }, (_, n) =>
        start(servers[n % 2]!, {
          owner: [me, other][n % 2]!,
          keys: [`${n}.a`, `${n}.b`],
          quotas: [{ ...QUOTA, files: 30 }],
        }),
      )
      const files = (await Promise.all(begin20)).flatMap(({ begun }) => ('files' in begun ? begun.files : []))
      expect(files.filter(file => 'objects' in file)).toHaveLength(30)
      expect(await windows(database, QUOTA)).toMatchObject([{ files: 30, bytes: 30 }])
    })

    it('of a key and of a person take of both, or of none', async context => {
      const { database, me } = await setUp(context)
      const [alice, bob] = ['alice', 'bob'].map(name => ({ ...QUOTA, client: `proxy: ${name}`, files: 1 }))
      const two = { ...QUOTA, files: 2 }
      let n = 0
      const ask = async (person: QuotaRule) => {
        const { begun } = await start(database, { owner: me, keys: [`${n++}`], quotas: [two, person] })
        return 'files' in begun && 'objects' in begun.files[0]!
      }
      expect([await ask(alice!), await ask(alice!), await ask(bob!), await ask(bob!)]).toEqual([
        true,
        false,
        true,
        false,
      ])
      const used = await windows(database, two, alice!, bob!)
      expect(used.map(({ files }) => files)).toEqual([2, 1, 1])
    })

    it.for<
      [
        what: string,
        left: number,
        end: (database: Database, upload: NewUpload, owner: string) => Promise<unknown>,
      ]
    >([
      ['of which a part is stored', 1, (database, upload) => done(database, upload, stored())],
      ['that fail', 0, (database, upload) => failed(database, upload)],
      [
        'of a process that has ended',
        0,
        async (database, _, owner) => {
          await kill(database, owner)
          await reapAll(database)
        },
      ],
      [
        'that fail, and arrive later',
        1,
        async (database, upload) => {
          await failed(database, upload, [OBJECT])
          await finishLate(database, upload, stored(), [QUOTA])
        },
      ],
    ])('give back what they do not use: %s', async ([, files, end], context) => {
      const { database, me } = await setUp(context)
      const { upload } = await start(database, { owner: me, keys: ['a.png', 'b.png'], quotas: [QUOTA] })
      await end(database, upload, me)
      expect(await windows(database, QUOTA)).toMatchObject([{ files, bytes: files }])
      const rows = await database.read(currentQuotas)
      expect(rows.map(({ client, files }) => [client, files])).toEqual(files > 0 ? [['ci', files]] : [])
    })

    it('begin anew with each window', async context => {
      const { database, me } = await setUp(context)
      const short = { ...QUOTA, windowMs: 50, files: 1 }
      const starts = new Set<number>()
      for (let n = 0; starts.size < 3; n++) {
        await start(database, { owner: me, keys: [`${n}`], quotas: [short] })
        const [window] = await windows(database, short)
        expect(window!.files).toBeLessThanOrEqual(1)
        if (window!.files === 1) starts.add(window!.startsAt)
      }
      expect([...starts].every(time => time % 50 === 0)).toBe(true)
    })
  })

  describe('of a process that was thought to have ended', () => {
    it('are reported, and others are left alone', async context => {
      const { database, me, other } = await setUp(context)
      const { upload } = await start(database, { owner: other })
      const { upload: mine } = await start(database, { owner: me, keys: ['b.png'] })
      const { upload: hooks } = await start(database, { owner: other, keys: ['c.png'] })
      await finish(database, hooks, { state: 'stored', files: [stored('c.png')], failed: [] })
      expect(await reapAll(database)).toEqual([])
      await kill(database, other)
      expect(await reapAll(database)).toEqual([upload.id])
      expect(await reapAll(database)).toEqual([])
      expect(await read(database, upload)).toMatchObject({ state: 'failed', problem: expect.any(String) })
      expect(await read(database, mine)).toMatchObject({ state: 'uploading' })
      expect(await database.read(db => dueUploads(db, 9, DAY_MS))).toEqual([hooks.id])
    })

    it('end as they were delivered', async context => {
      const { database, other } = await setUp(context)
      const { upload } = await start(database, { owner: other })
      await kill(database, other)
      await reapAll(database)
      expect(await done(database, upload, stored())).toMatchObject({ files: [{ key: 'a.png' }], lost: [] })
      expect(await read(database, upload)).toMatchObject({ state: 'done' })
    })

    it.for([
      ['taken by other content', 'replace'],
      ['removed', 'remove'],
      ['found to be missing', 'look'],
    ] as const)('give no link to an object that was %s meanwhile', async ([, what], context) => {
      const { database, me, other } = await setUp(context)
      const { upload, wanted } = await start(database, { owner: other })
      await kill(database, other)
      if (what === 'replace') {
        const { claimant } = await start(database, { owner: me, keys: ['x.png'] })
        await claimMore(database, claimant, { ...wanted[0]!, sha256: 'X', onConflict: 'replace' })
      } else {
        await database.tx(db => takeOpen(db, me, [AT.destination], 9))
        await database.tx(db => db.run(sql`update objects set is_new = 1`))
        const found = what === 'remove' ? 'something' : 'nothing'
        await database.tx(db => settleOpen(db, me, OBJECT, found))
        const due = { owner: me, among: [AT.destination], now: Date.now(), limit: 9, longestPauseMs: 1000 }
        await noteRemoved(
          database,
          (await takeDue(database, due)).map(({ name }) => name),
        )
      }
      expect(await done(database, upload, stored())).toEqual({ files: [], lost: [0] })
      expect(await read(database, upload)).toMatchObject({ state: 'failed', files: [] })
      expect(await history(database)).toEqual([])
    })
  })

  it.for([
    ['was removed', true],
    ['is being removed', false],
  ] as const)('whose object %s when they end give no link to it', async ([, isGone], context) => {
    const { database, me, other } = await setUp(context)
    const { upload } = await start(database, { owner: me, expiresAt: 10 })
    await done(database, upload, stored('a.png', { expiresAt: 10 }))
    const second = await start(database, { owner: other, expiresAt: 20 })
    const wanted = { owner: me, among: [AT.destination], now: 30, limit: 9, longestPauseMs: 1000 }
    const names = (await takeDue(database, wanted)).map(({ name }) => name)
    if (isGone) await noteRemoved(database, names)
    expect((await done(database, second.upload, stored())).lost).toEqual([0])
  })

  it('write each content that met another at one object for itself', async context => {
    const { database, me } = await setUp(context)
    const { upload, claimant, wanted } = await start(database, { owner: me, keys: ['a.png', 'b.png'] })
    await done(database, upload, stored(), stored('b.png', { index: 1 }))
    const second = newUpload({ owner: me })
    const claimer = { ...claimant, id: second.id, claimed: new Set<string>() }
    const [a] = wanted
    const files = [a!, { ...a!, sha256: 'X', onConflict: 'replace' as const }]
    await begin(
      database,
      second,
      claimer,
      files.map((one, index) => ({ index, size: 1, wanted: [one] })),
      {},
    )
    const finished = await done(database, second, stored(), stored('a.png', { index: 1, sha256: 'X' }))
    expect(finished).toMatchObject({ files: [{ index: 1 }], lost: [0] })
  })

  describe('that arrive late', () => {
    it.for([
      ['the object waits for them', true],
      ['the object belongs to another upload now', false],
    ] as const)('are in the history: %s', async ([, isTheirs], context) => {
      const { database, me, other } = await setUp(context)
      const { upload, wanted } = await start(database, { owner: other })
      await failed(database, upload, [OBJECT])
      if (!isTheirs) {
        await kill(database, other)
        const { claimant } = await start(database, { owner: me, keys: ['x.png'] })
        await claimMore(database, claimant, { ...wanted[0]!, sha256: 'X', onConflict: 'replace' })
      }
      const late = await finishLate(database, upload, stored(), [])
      expect(late).toBe(isTheirs)
      expect(await history(database)).toHaveLength(isTheirs ? 1 : 0)
    })
  })

  describe('with post-upload steps', () => {
    const setUpHooks = async (context: TestContext) => {
      const all = await setUp(context)
      const { upload } = await start(all.database, { owner: all.me })
      await finish(all.database, upload, { state: 'stored', files: [stored()], failed: [] })
      return { ...all, id: upload.id }
    }

    it('are taken by one of many at once', async context => {
      const { place, database, id } = await setUpHooks(context)
      await database.tx(db => db.run(sql`update uploads set owner = ''`))
      const databases = [database, place.open(), place.open()]
      const owners = await Promise.all([0, 1, 2, 3, 4, 5].map(() => newOwnerIn(database)))
      const taken = await Promise.all(owners.map((owner, n) => takeStored(databases[n % 3]!, id, owner.id)))
      expect(taken.filter(one => one !== undefined)).toMatchObject([
        { id, state: 'stored', files: [{ key: 'a.png' }] },
      ])
    })

    it('are taken only from a process that has ended', async context => {
      const { database, me, other, id } = await setUpHooks(context)
      expect(await takeStored(database, id, other)).toBeUndefined()
      expect(await takeStored(database, id, me), 'by the same process').toMatchObject({ id })
      await kill(database, me)
      expect(await takeStored(database, id, other)).toMatchObject({ id })
      const progress = { state: 'done', steps: ['hook:a'], attempts: 0 } as const
      expect(await advance(database, id, me, progress), 'the first one has only paused').toBe(false)
      expect(await advance(database, id, other, progress)).toBe(true)
      expect(await advance(database, id, other, progress), 'it is over').toBe(false)
      expect(await takeStored(database, id, other)).toBeUndefined()
    })

    it('remember completed steps, postponed attempts and the end', async context => {
      const { database, me, id } = await setUpHooks(context)
      const steps = ['hook:a']
      await advance(database, id, me, { state: 'stored', steps, attempts: 0 })
      expect(await database.read(db => dueUploads(db, 9, DAY_MS)), 'they run').toEqual([])
      const postponed = { state: 'stored', steps, attempts: 1, problem: 'b failed' } as const
      await advance(database, id, me, { ...postponed, pauseMs: DAY_MS })
      expect(await database.read(pendingUploads)).toMatchObject([{ id, owner: '', ...postponed }])
      expect(await database.read(db => dueUploads(db, 9, 2 * DAY_MS))).toEqual([])
      expect(await database.read(db => dueUploads(db, 9, 1000)), 'the clock was set back').toEqual([id])
      expect(await takeStored(database, id, me)).toMatchObject({ steps, attempts: 1 })
      await advance(database, id, me, { state: 'done', steps: [...steps, 'hook:b'], attempts: 1 })
      expect(await database.read(db => readUpload(db, id))).toMatchObject({
        state: 'done',
        problem: undefined,
      })
      expect(await database.read(pendingUploads)).toEqual([])
    })
  })

  it('leave no row of an object whose history is forgotten', async context => {
    const { database, me } = await setUp(context)
    const { upload } = await start(database, { owner: me })
    await done(database, upload, stored())
    expect(await pruneFiles(database, LATER, {})).toBe(1)
    expect(await database.read(db => db.all(sql`select name from objects`))).toEqual([])
  })
})
