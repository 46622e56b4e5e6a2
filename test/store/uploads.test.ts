import { describe, expect } from 'vitest'
import type { Claimant } from '../../src/store/claims.ts'
import type { FailedFile, QuotaRule, StoredFile } from '../../src/store/contract.ts'
import type { Database } from '../../src/store/database.ts'
import { findFiles } from '../../src/store/history.ts'
import { objectName, settleOpen, takeOpen } from '../../src/store/objects.ts'
import { advance, dueUploads, pendingUploads, reap, takeStored } from '../../src/store/pending.ts'
import { currentQuotas, readWindows } from '../../src/store/quotas.ts'
import { noteRemoved, takeDue } from '../../src/store/removals.ts'
import { earlierRequest, REQUEST_KEPT_MS } from '../../src/store/requests.ts'
import { sql } from '../../src/store/sql.ts'
import { type NewUpload, readUpload } from '../../src/store/upload-rows.ts'
import { begin, claimMore, finish, finishLate } from '../../src/store/uploads.ts'
import { AT, claimsOf, kill, newFile, newOwnerIn, newUpload, storeTest } from '../helpers/stores.ts'

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
  return { upload, claimant, wanted, begun, claims: claimsOf(begun, files) }
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

const it = storeTest()

describe('uploads', () => {
  it('are kept as they were written, also when the database is closed and opened', async ({
    place,
    database,
    me,
  }) => {
    const { upload } = await start(database, { owner: me.id })
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

  it('are written once, also when the end is written again because its response was lost', async ({
    database,
    me,
  }) => {
    const { upload } = await start(database, { owner: me.id, quotas: [QUOTA], keys: ['a.png', 'b.png'] })
    for (let n = 0; n < 2; n++) expect((await done(database, upload, stored())).lost).toEqual([])
    expect(await history(database)).toHaveLength(1)
    expect(await windows(database, QUOTA)).toMatchObject([{ files: 1, bytes: 1 }])
  })

  it('are written with a copy at each mirror, and a copy of files that have failed', async ({
    database,
    me,
  }) => {
    const { upload, claimant } = await start(database, { owner: me.id, keys: ['a.png', 'b.png'] })
    const at = { destination: 'local/m', location: '/m/' }
    for (const key of ['a.png', 'c.png'])
      await claimMore(database, claimant, {
        ...{ ...at, key, sha256: key, onConflict: 'rename', isContentKey: false },
        ...{ dedupe: false, expiresAt: LATER },
      })
    const copy = { ...at, key: 'a.png', url: 'u' }
    const gone = { ...at, destination: 'local/n', key: 'gone.png', url: 'u' }
    const { files } = await finish(database, upload, {
      ...{
        state: 'failed',
        files: [stored('a.png', { mirrors: [copy, gone], expiresAt: LATER })],
        failed: [{ ...FAILED, index: 1 }],
      },
      others: [stored('b.png', { index: 1 })],
    })
    expect(files[0]?.mirrors).toEqual([copy, { destination: gone.destination, error: expect.any(String) }])
    const entries = (await history(database)).map(({ destination, key, expiresAt }) => [
      destination,
      key,
      expiresAt,
    ])
    expect(entries.sort()).toEqual([
      [AT.destination, 'a.png', LATER],
      [AT.destination, 'b.png', undefined],
      [at.destination, 'a.png', LATER],
    ])
  })

  it.for<[string, string, number[], string[]]>([
    ['is stored: the history had the copy, which nobody links', 'z', [], ['z']],
    ['is lost: it counted as stored because of the copy', 'lost', [0], ['a']],
  ])('whose fallback is a mirror, too, and whose file %s', async ([, key, lost, kept], { database, me }) => {
    const { upload, claimant } = await start(database, { owner: me.id, keys: ['z'] })
    await claimMore(database, claimant, {
      ...{ ...AT, key: 'a', sha256: 'z', onConflict: 'rename', isContentKey: false },
      ...{ dedupe: false, expiresAt: null },
    })
    const mirrors = [{ ...AT, key: 'a', url: 'u' }]
    const finished = await done(database, upload, stored(key, { sha256: 'z', mirrors }))
    expect(finished.lost).toEqual(lost)
    expect((await history(database)).map(one => one.key)).toEqual(kept)
  })

  describe('with an idempotency key', () => {
    it('get it once of many at the same time', async ({ place, database, me, other }) => {
      const servers = [database, place.open()]
      const owners = [me.id, other.id]
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
    const REPEATED: [what: string, isFree: boolean, isFreeForAnother: boolean, happens: Case][] = [
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
        'was begun 24 hours ago',
        ...([true, true] as const),
        async (database, upload) => {
          await done(database, upload, stored())
          const before = Date.now() - REQUEST_KEPT_MS - 1000
          await database.tx(db => db.run(sql`update requests set created_at = ${before}`))
        },
      ],
      [
        'is not known any more',
        ...([true, true] as const),
        (database, upload) => database.tx(db => db.run(sql`delete from uploads where id = ${upload.id}`)),
      ],
    ]
    it.for(
      REPEATED.flatMap(([what, same, another, happens]) => [
        [what, 'the same', same, happens] as const,
        [what, 'another', another, happens] as const,
      ]),
    )(
      'repeat one that %s: the key is free for %s request: %s',
      async ([what, kind, isFree, happens], { database, me, other }) => {
        const fingerprint = kind === 'the same' ? 'f' : 'g'
        const { upload } = await start(database, { owner: other.id, key: 'k', expiresAt: 10 })
        await happens(database, upload, other.id)
        const request = { key: 'k', fingerprint }
        const earlier = await database.read(db => earlierRequest(db, request, Date.now()))
        expect(earlier?.known?.upload.id).toBe(isFree ? undefined : upload.id)
        // The first attempt says how its repetition names the objects, unless that was stored and is gone.
        if (isFree && fingerprint === 'f')
          expect(earlier?.first !== undefined).toBe(!/^has lost|hours ago/.test(what))
        const { begun } = await start(database, { owner: me.id, key: 'k', fingerprint })
        expect(begun.is).toBe(isFree ? 'begun' : 'known')
        if (begun.is === 'known') expect(begun).toMatchObject({ upload: { id: upload.id }, fingerprint: 'f' })
      },
    )

    it('get the objects, the seed and the quota of the attempt that they repeat', async ({
      database,
      me,
      other,
    }) => {
      const asked = { key: 'k', quotas: [QUOTA] }
      const createdAt = Date.now() - 60_000
      const first = await start(database, { ...asked, owner: other.id, createdAt })
      await other.die()
      const request = { key: 'k', fingerprint: 'f' }
      const earlier = () => database.read(db => earlierRequest(db, request, Date.now()))
      expect(await earlier()).toMatchObject({
        ...{ first: { time: createdAt, seed: `seed of ${first.upload.id}` }, known: undefined },
      })
      const { claims, upload } = await start(database, { ...asked, owner: me.id })
      expect(claims).toMatchObject([{ is: 'mine', key: 'a.png' }])
      expect(await windows(database, QUOTA)).toMatchObject([{ files: 1 }])
      expect(await read(database, first.upload)).toMatchObject({ state: 'failed' })
      expect(await earlier(), 'it is the time in object keys').toMatchObject({ first: { time: createdAt } })
      await done(database, upload, stored())
      expect((await done(database, first.upload, stored())).lost, 'the first one has only paused').toEqual([])
    })

    it('do not get an object that the attempt has claimed for a file of another name', async ({
      database,
      me,
      other,
    }) => {
      const { claimant, wanted } = await start(database, { owner: other.id, key: 'k', keys: ['b.png'] })
      await claimMore(database, claimant, { ...wanted[0]!, key: 'x.png', sha256: 'a.png' })
      await other.die()
      const { claims } = await start(database, { owner: me.id, key: 'k' })
      expect(claims).toMatchObject([{ is: 'mine', key: 'a.png' }])
    })
  })

  describe('with a quota', () => {
    it('take what fits, in order, and nothing beyond', async ({ database, me }) => {
      const keys = ['a', 'b', 'c', 'd']
      const sizes = [60, 50, 40, 1]
      const { begun, claims } = await start(database, { owner: me.id, keys, sizes, quotas: [QUOTA] })
      const full = begun.is === 'begun' ? [...begun.full] : []
      expect(full).toMatchObject([
        [1, { rule: QUOTA, files: 1, bytes: 60 }],
        [3, { files: 2, bytes: 100 }],
      ])
      expect(claims).toMatchObject([{ key: 'a' }, { key: 'c' }])
      expect(await windows(database, QUOTA)).toMatchObject([{ files: 2, bytes: 100 }])
    })

    it('never exceed it on several servers at once, and nothing that fits is refused', async ({
      place,
      database,
      me,
      other,
    }) => {
      const servers = [database, place.open()]
      const begin20 = Array.from({ length: 20 }, (_, n) =>
        start(servers[n % 2]!, {
          owner: [me, other][n % 2]!.id,
          keys: [`${n}.a`, `${n}.b`],
          quotas: [{ ...QUOTA, files: 30 }],
        }),
      )
      expect((await Promise.all(begin20)).flatMap(({ claims }) => claims)).toHaveLength(30)
      expect(await windows(database, QUOTA)).toMatchObject([{ files: 30, bytes: 30 }])
    })

    it('of a key and of a person take of both, or of none', async ({ database, me }) => {
      const [alice, bob] = ['alice', 'bob'].map(name => ({ ...QUOTA, client: `proxy: ${name}`, files: 1 }))
      const two = { ...QUOTA, files: 2 }
      let n = 0
      const ask = async (person: QuotaRule) => {
        const { claims } = await start(database, { owner: me.id, keys: [`${n++}`], quotas: [two, person] })
        return claims.length === 1
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
    ])('give back what they do not use: %s', async ([, files, end], { database, me }) => {
      const { upload } = await start(database, { owner: me.id, keys: ['a.png', 'b.png'], quotas: [QUOTA] })
      await end(database, upload, me.id)
      expect(await windows(database, QUOTA)).toMatchObject([{ files, bytes: files }])
      const rows = await database.read(currentQuotas)
      expect(rows.map(({ client, files }) => [client, files])).toEqual(files > 0 ? [['ci', files]] : [])
    })
  })

  describe('of a process that was thought to have ended', () => {
    it('are reported, and others are left alone', async ({ database, me, other }) => {
      const { upload } = await start(database, { owner: other.id })
      const { upload: mine } = await start(database, { owner: me.id, keys: ['b.png'] })
      const { upload: hooks } = await start(database, { owner: other.id, keys: ['c.png'] })
      await finish(database, hooks, { state: 'stored', files: [stored('c.png')], failed: [] })
      expect(await reapAll(database)).toEqual([])
      await other.die()
      expect(await reapAll(database)).toEqual([upload.id])
      expect(await reapAll(database)).toEqual([])
      expect(await read(database, upload)).toMatchObject({ state: 'failed', problem: expect.any(String) })
      expect(await read(database, mine)).toMatchObject({ state: 'uploading' })
      expect(await database.read(db => dueUploads(db, 9, DAY_MS))).toEqual([hooks.id])
    })

    it('end as they were delivered', async ({ database, other }) => {
      const { upload } = await start(database, { owner: other.id })
      await other.die()
      await reapAll(database)
      expect(await done(database, upload, stored())).toMatchObject({ files: [{ key: 'a.png' }], lost: [] })
      expect(await read(database, upload)).toMatchObject({ state: 'done' })
    })

    it.for([
      ['taken by other content', 'replace'],
      ['removed', 'remove'],
      ['found to be missing', 'look'],
    ] as const)(
      'give no link to an object that was %s meanwhile',
      async ([, what], { database, me, other }) => {
        const { upload, wanted } = await start(database, { owner: other.id })
        await other.die()
        if (what === 'replace') {
          const { claimant } = await start(database, { owner: me.id, keys: ['x.png'] })
          await claimMore(database, claimant, { ...wanted[0]!, sha256: 'X', onConflict: 'replace' })
        } else {
          await database.tx(db => takeOpen(db, me.id, [AT.destination], 9))
          await database.tx(db => db.run(sql`update objects set is_new = 1`))
          const found = what === 'remove' ? 'something' : 'nothing'
          await database.tx(db => settleOpen(db, me.id, OBJECT, found))
          const due = {
            owner: me.id,
            among: [AT.destination],
            now: Date.now(),
            limit: 9,
            longestPauseMs: 1000,
          }
          await noteRemoved(
            database,
            (await takeDue(database, due)).map(({ name }) => name),
          )
        }
        expect(await done(database, upload, stored())).toEqual({ files: [], lost: [0] })
        expect(await read(database, upload)).toMatchObject({ state: 'failed', files: [] })
        expect(await history(database)).toEqual([])
      },
    )
  })

  it.for([
    ['was removed', true],
    ['is being removed', false],
  ] as const)(
    'whose object %s when they end give no link to it',
    async ([, isGone], { database, me, other }) => {
      const { upload } = await start(database, { owner: me.id, expiresAt: 10 })
      await done(database, upload, stored('a.png', { expiresAt: 10 }))
      const second = await start(database, { owner: other.id, expiresAt: 20 })
      const wanted = { owner: me.id, among: [AT.destination], now: 30, limit: 9, longestPauseMs: 1000 }
      const names = (await takeDue(database, wanted)).map(({ name }) => name)
      if (isGone) await noteRemoved(database, names)
      expect((await done(database, second.upload, stored())).lost).toEqual([0])
    },
  )

  it('write each content that met another at one object for itself', async ({ database, me }) => {
    const { upload, claimant, wanted } = await start(database, { owner: me.id, keys: ['a.png', 'b.png'] })
    await done(database, upload, stored(), stored('b.png', { index: 1 }))
    const second = newUpload({ owner: me.id })
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

  describe('with post-upload steps', () => {
    const addStored = async (database: Database, { id: owner }: { readonly id: string }) => {
      const { upload } = await start(database, { owner })
      await finish(database, upload, { state: 'stored', files: [stored()], failed: [] })
      return upload.id
    }

    it('are taken by one of many at once', async ({ place, database, me }) => {
      const id = await addStored(database, me)
      await database.tx(db => db.run(sql`update uploads set owner = ''`))
      const databases = [database, place.open(), place.open()]
      const owners = await Promise.all([0, 1, 2, 3, 4, 5].map(() => newOwnerIn(database)))
      const taken = await Promise.all(owners.map((owner, n) => takeStored(databases[n % 3]!, id, owner.id)))
      expect(taken.filter(one => one !== undefined)).toMatchObject([
        { id, state: 'stored', files: [{ key: 'a.png' }] },
      ])
    })

    it('are taken only from a process that has ended', async ({ database, me, other }) => {
      const id = await addStored(database, me)
      expect(await takeStored(database, id, other.id)).toBeUndefined()
      expect(await takeStored(database, id, me.id), 'by the same process').toMatchObject({ id })
      await me.die()
      expect(await takeStored(database, id, other.id)).toMatchObject({ id })
      const progress = { state: 'done', steps: ['hook:a'], attempts: 0 } as const
      expect(await advance(database, id, me.id, progress), 'the first one has only paused').toBe(false)
      expect(await advance(database, id, other.id, progress)).toBe(true)
      expect(await advance(database, id, other.id, progress), 'it is over').toBe(false)
      expect(await takeStored(database, id, other.id)).toBeUndefined()
    })

    it('remember completed steps, postponed attempts and the end', async ({ database, me }) => {
      const id = await addStored(database, me)
      const steps = ['hook:a']
      await advance(database, id, me.id, { state: 'stored', steps, attempts: 0 })
      expect(await database.read(db => dueUploads(db, 9, DAY_MS)), 'they run').toEqual([])
      const postponed = { state: 'stored', steps, attempts: 1, problem: 'b failed' } as const
      await advance(database, id, me.id, { ...postponed, pauseMs: DAY_MS })
      expect(await database.read(pendingUploads)).toMatchObject([{ id, owner: '', ...postponed }])
      expect(await database.read(db => dueUploads(db, 9, 2 * DAY_MS))).toEqual([])
      expect(await database.read(db => dueUploads(db, 9, 1000)), 'the clock was set back').toEqual([id])
      expect(await takeStored(database, id, me.id)).toMatchObject({ steps, attempts: 1 })
      await advance(database, id, me.id, { state: 'done', steps: [...steps, 'hook:b'], attempts: 1 })
      expect(await database.read(db => readUpload(db, id))).toMatchObject({
        state: 'done',
        problem: undefined,
      })
      expect(await database.read(pendingUploads)).toEqual([])
    })
  })
})
