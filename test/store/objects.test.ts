import { describe, expect, it, type TestContext } from 'vitest'
import { type Claim, type Claimant, noteLook, retake, type Wanted } from '../../src/store/claims.ts'
import type { Database } from '../../src/store/database.ts'
import { findFiles } from '../../src/store/history.ts'
import { settleOpen, takeOpen } from '../../src/store/objects.ts'
import {
  countDue,
  noteRemoved,
  overdue,
  postpone,
  releaseRemovals,
  takeDue,
  takeForRemoval,
} from '../../src/store/removals.ts'
import { sql } from '../../src/store/sql.ts'
import type { NewUpload } from '../../src/store/upload-rows.ts'
import { begin, claimMore, finish } from '../../src/store/uploads.ts'
import { claimsOf, databaseEngines, kill, newFile, newOwnerIn, newUpload } from '../helpers/stores.ts'

const AT = { destination: 'local/blog', location: '/srv/blog/' }
const HOUR_MS = 3_600_000
const LATER = Date.now() + HOUR_MS
const PAST = 10

const want = (key: string, sha256: string, change: Partial<Wanted> = {}): Wanted => ({
  ...{ ...AT, key, sha256, onConflict: 'rename', isContentKey: false, dedupe: false, expiresAt: null },
  ...change,
})

/** An upload that has begun. */
interface Begun {
  readonly upload: NewUpload
  readonly claimant: Claimant
  readonly wanted: readonly Wanted[]
  readonly claims: readonly Claim[]
}

async function start(database: Database, owner: string, ...wanted: Wanted[]): Promise<Begun> {
  const upload = newUpload({ owner })
  const claimant: Claimant = { id: upload.id, claimed: new Set() }
  const files = wanted.map((one, index) => ({ index, size: 1, wanted: [one] }))
  const begun = await begin(database, upload, claimant, files, {})
  if (begun.is === 'known') throw new Error('it has no key')
  return { upload, claimant, wanted, claims: claimsOf(begun.files) }
}

const urlOf = (key: string) => `https://x.example/${key}`

/** Ends an upload whose claimed files are stored. */
const end = (database: Database, { upload, claimant, claims, wanted }: Begun, open?: readonly string[]) => {
  const files = claims.flatMap((one, index) => {
    const { sha256, expiresAt } = wanted[index]!
    if (open || !('key' in one) || one.is === 'conflict') return []
    const { key } = one
    return [newFile({ index, key, sha256, url: urlOf(key), ...(expiresAt !== null && { expiresAt }) })]
  })
  const { claimed } = claimant
  return finish(database, upload, { state: 'done', files, failed: [], claimed, open: new Set(open) })
}

/** @returns the claims of an upload, which is done */
async function store(database: Database, owner: string, ...wanted: Wanted[]): Promise<readonly Claim[]> {
  const begun = await start(database, owner, ...wanted)
  await end(database, begun)
  return begun.claims
}

/** What is shown of a claim: `mine a.png`. */
const show = (one: Claim | undefined) => (one && 'key' in one ? `${one.is} ${one.key}` : one?.is)

const rowsOf = (database: Database) =>
  database.read(db =>
    db.all<{ key: string; state: string; holder: string | null; sha256: string; expires_at: number | null }>(
      sql`select key, state, holder, sha256, expires_at from objects order by name`,
    ),
  )

const due = (database: Database, owner: string, now = Date.now(), limit = 100) =>
  takeDue(database, { owner, among: [AT.destination], now, limit, longestPauseMs: 1000 })
const keysOf = (objects: readonly { key: string }[]) => objects.map(({ key }) => key).sort()
const open = (database: Database, owner: string) =>
  database.tx(db => takeOpen(db, owner, [AT.destination], 100))
const settle = (
  database: Database,
  owner: string,
  name: string,
  found: 'nothing' | 'something' | 'unasked',
) => database.tx(db => settleOpen(db, owner, name, found))

describe.each(databaseEngines())('objects in %s', (_name, make) => {
  const setUp = async (context: TestContext) => {
    const database = (await make(context)).open()
    const [me, other] = [await newOwnerIn(database), await newOwnerIn(database)]
    return { database, me: me.id, other: other.id }
  }

  it.for<[what: string, stored: Wanted[], wanted: Wanted[], expected: string[]]>([
    ['a new key', [], [want('a.png', 'A')], ['mine a.png']],
    ['the same content', [want('a.png', 'A')], [want('a.png', 'A')], ['same a.png']],
    ['other content', [want('a.png', 'A')], [want('a.png', 'B')], ['mine a-2.png']],
    ['another spelling', [want('a.png', 'A')], [want('A.PNG', 'A')], ['mine A-2.PNG']],
    [
      'the same content under a number',
      [want('a.png', 'A'), want('a.png', 'B')],
      [want('a.png', 'B')],
      ['same a-2.png'],
    ],
    [
      'two files whose short hashes are the same',
      [],
      [want('a-bce48b20.txt', 'A'), want('a-bce48b20.txt', 'B')],
      ['mine a-bce48b20.txt', 'mine a-bce48b20-2.txt'],
    ],
    [
      'a file whose number is the key of the next one',
      [want('a.png', 'X')],
      [want('a.png', 'A'), want('a-2.png', 'A')],
      ['mine a-3.png', 'mine a-2.png'],
    ],
    ['replacing', [want('a.png', 'A')], [want('a.png', 'B', { onConflict: 'replace' })], ['mine a.png']],
    [
      'replacing the same content',
      [want('a.png', 'A')],
      [want('a.png', 'A', { onConflict: 'replace' })],
      ['mine a.png'],
    ],
    [
      'two contents that replace: the number replaces nothing',
      [want('a-2.png', 'X')],
      [want('a.png', 'A', { onConflict: 'replace' }), want('a.png', 'B', { onConflict: 'replace' })],
      ['mine a.png', 'mine a-3.png'],
    ],
    [
      'replacing the same short hash of other content',
      [want('a.png', 'A')],
      [want('a.png', 'B', { onConflict: 'replace', isContentKey: true })],
      ['mine a-2.png'],
    ],
    ['a conflict', [want('a.png', 'A')], [want('a.png', 'B', { onConflict: 'error' })], ['conflict a.png']],
    [
      'the same content without a conflict',
      [],
      [want('a.png', 'A', { onConflict: 'error' })],
      ['mine a.png'],
    ],
    [
      'the same content at any key',
      [want('a.png', 'A')],
      [want('b.png', 'A', { dedupe: true })],
      ['same a.png'],
    ],
    [
      'a location of its own',
      [want('a.png', 'A')],
      [want('a.png', 'B', { location: '/x/' })],
      ['mine a.png'],
    ],
  ])('are claimed: %s', async ([, stored, wanted, expected], context) => {
    const { database, me, other } = await setUp(context)
    for (const one of stored) await store(database, other, one)
    expect((await start(database, me, ...wanted)).claims.map(show)).toEqual(expected)
  })

  it('the 2000th image.png takes as many statements as the second', async context => {
    const { database, me } = await setUp(context)
    await store(database, me, want('image.png', '1'))
    const counts: number[] = []
    const counting: Database = {
      ...database,
      tx: work =>
        database.tx(db => {
          const count = () => counts.push(counts.pop()! + 1)
          const all: typeof db.all = async query => {
            count()
            return db.all(query)
          }
          const run: typeof db.run = async query => {
            count()
            return db.run(query)
          }
          return work({ ...db, all, run })
        }),
    }
    for (const n of [2, 3]) {
      counts.push(0)
      await store(counting, me, want('image.png', `${n}`))
    }
    await database.tx(db => db.run(sql`update objects set following = 2000 where key = 'image.png'`))
    counts.push(0)
    expect((await store(counting, me, want('image.png', '2000'))).map(show)).toEqual(['mine image-2000.png'])
    expect(new Set(counts).size, String(counts)).toBe(1)
    expect(counts[0]).toBeLessThan(16)
  })

  it('are one for each content when two servers store 40 contents under one name at once', async context => {
    const place = await make(context)
    const servers = [place.open(), place.open()]
    const owners = [await newOwnerIn(servers[0]!), await newOwnerIn(servers[1]!)]
    const claims = await Promise.all(
      Array.from({ length: 40 }, (_, n) => store(servers[n % 2]!, owners[n % 2]!.id, want('a.png', `${n}`))),
    )
    expect(new Set(claims.flat().map(show)).size).toBe(40)
  })

  it('are waited for while the same content is stored, and other content gets a number', async context => {
    const { database, me, other } = await setUp(context)
    const first = await start(database, other, want('a.png', 'A'))
    const second = await start(database, me, want('a.png', 'A'), want('a.png', 'B'))
    expect(second.claims.map(show)).toEqual(['wait', 'mine a-2.png'])
    await end(database, first)
    const again = await claimMore(database, second.claimant, want('a.png', 'A'))
    expect(again).toEqual({
      ...{ is: 'same', name: '/srv/blog/a.png', key: 'a.png' },
      ...{ url: urlOf('a.png'), deleteUrl: undefined },
    })
  })

  it.for<[content: string, onConflict: Wanted['onConflict'], expected: string]>([
    ['A', 'rename', 'mine a.png'],
    ['B', 'rename', 'mine a-2.png'],
    ['B', 'replace', 'mine a.png'],
    ['B', 'error', 'conflict a.png'],
  ])('of a dead process, with %s and %s: %s', async ([content, onConflict, expected], context) => {
    const { database, me, other } = await setUp(context)
    await start(database, other, want('a.png', 'A'))
    await kill(database, other)
    expect((await start(database, me, want('a.png', content, { onConflict }))).claims.map(show)).toEqual([
      expected,
    ])
  })

  it('of a dead process with a number are taken by the same content', async context => {
    const { database, me, other } = await setUp(context)
    await store(database, me, want('a.png', 'X'))
    await start(database, other, want('a.png', 'A'))
    await kill(database, other)
    const { claims } = await start(database, me, want('a.png', 'B'), want('a.png', 'A'))
    expect(claims.map(show)).toEqual(['mine a-3.png', 'mine a-2.png'])
    expect(claims[1], 'which something else may have').toMatchObject({ mayExist: true })
  })

  it('that are found to be of somebody else keep their content, and are never removed', async context => {
    const { database, me } = await setUp(context)
    const wanted = want('a.png', 'A')
    const { claims, claimant } = await start(database, me, wanted)
    expect(claims).toMatchObject([{ is: 'mine', mayExist: true }])
    await database.tx(db => noteLook(db, claimant, '/srv/blog/a.png', 'foreign'))
    expect(show(await claimMore(database, claimant, wanted))).toBe('mine a-2.png')
    expect((await rowsOf(database))[1]).toMatchObject({ key: 'a.png', state: 'stored', expires_at: null })
  })

  it('that an upload replaces and did not store itself never expire', async context => {
    const { database, me } = await setUp(context)
    const wanted = want('a.png', 'A', { onConflict: 'replace', expiresAt: PAST })
    const begun = await start(database, me, wanted)
    expect(begun.claims).toMatchObject([{ mayExist: true }])
    await database.tx(db => noteLook(db, begun.claimant, '/srv/blog/a.png', 'replaced'))
    await end(database, begun)
    expect(await due(database, me)).toEqual([])
  })

  it('expire with the latest of their uploads', async context => {
    const { database, me } = await setUp(context)
    for (const expiresAt of [LATER, LATER + 5, LATER + 2])
      await store(database, me, want('a.png', 'A', { expiresAt }))
    expect(await rowsOf(database)).toMatchObject([{ expires_at: LATER + 5 }])
    for (const expiresAt of [null, LATER]) await store(database, me, want('a.png', 'A', { expiresAt }))
    expect(await rowsOf(database)).toMatchObject([{ expires_at: null }])
  })

  it('that an upload replaces keep the later end of those before', async context => {
    const { database, me } = await setUp(context)
    await store(database, me, want('a.png', 'A', { expiresAt: LATER + 5 }))
    await store(database, me, want('a.png', 'B', { expiresAt: LATER, onConflict: 'replace' }))
    expect(await rowsOf(database)).toMatchObject([{ sha256: 'B', expires_at: LATER + 5 }])
  })

  it('that could not be stored are free, and one that a transfer may still write is not', async context => {
    const { database, me, other } = await setUp(context)
    const begun = await start(database, other, want('a.png', 'A'), want('b.png', 'B'))
    await end(database, begun, ['/srv/blog/b.png'])
    const next = await start(database, me, want('a.png', 'X'), want('b.png', 'B'), want('b.png', 'X'))
    expect(next.claims.map(show)).toEqual(['mine a.png', 'wait', 'mine b-2.png'])
    await store(database, me, want('c.png', 'C'))
    await end(database, await start(database, me, want('c.png', 'D', { onConflict: 'replace' })), [])
    const row = (await rowsOf(database)).find(({ key }) => key === 'c.png')
    expect(row, 'its content is not known').toMatchObject({ state: 'stored', holder: null, sha256: '' })
  })

  it('that have vanished are stored again under their key', async context => {
    const { database, me } = await setUp(context)
    const wanted = want('a.png', 'A')
    await store(database, me, wanted)
    const { claimant, claims } = await start(database, me, wanted)
    const same = claims[0] as Extract<Claim, { is: 'same' }>
    const again = () => database.tx(db => retake(db, claimant, same, wanted))
    expect(await again()).toEqual({ is: 'mine', name: same.name, key: 'a.png', mayExist: false })
    expect(await again(), 'only once').toEqual({ is: 'wait' })
  })

  it('keep no content that was only to be stored: a removal that failed gave its link to other bytes', async context => {
    const { database, me, other } = await setUp(context)
    await store(database, me, want('a.png', 'A', { expiresAt: PAST }))
    await start(database, other, want('a.png', 'B', { onConflict: 'replace', expiresAt: PAST }))
    await kill(database, other)
    const [object] = await due(database, me)
    await postpone(database, me, object!.name, { retryAt: LATER, problem: 'it is down' })
    expect((await start(database, me, want('a.png', 'B'))).claims.map(show)).toEqual(['mine a-2.png'])
  })

  it('that were stored once are not taken for what a dead process has left', async context => {
    const { database, me, other } = await setUp(context)
    const wanted = want('a.png', 'A')
    const first = await start(database, me, wanted)
    await database.tx(db => noteLook(db, first.claimant, '/srv/blog/a.png', 'nothing'))
    await end(database, first)
    await start(database, other, { ...wanted, onConflict: 'replace' })
    await kill(database, other)
    expect((await start(database, me, wanted)).claims).toMatchObject([{ is: 'mine', mayExist: true }])
  })

  it.for<[found: 'nothing' | 'something' | 'unasked', wasAbsent: boolean, rows: object[], isDue: boolean]>([
    ['nothing', true, [], false],
    ['something', true, [{ state: 'storing', holder: '' }], true],
    ['something', false, [{ state: 'storing', holder: '', expires_at: null }], false],
    ['unasked', true, [{ state: 'storing', holder: '', expires_at: null }], false],
  ])(
    'that a dead process was storing: %s is there, and before there was nothing: %s',
    async (row, context) => {
      const [found, wasAbsent, rows, isDue] = row
      const { database, me, other } = await setUp(context)
      const { claimant } = await start(database, other, want('a.png', 'A'))
      if (wasAbsent) await database.tx(db => noteLook(db, claimant, '/srv/blog/a.png', 'nothing'))
      expect(await open(database, me), 'while it lives').toEqual([])
      await kill(database, other)
      expect(await open(database, me)).toMatchObject([{ key: 'a.png' }])
      expect(await open(database, me), 'only once').toEqual([])
      await settle(database, me, '/srv/blog/a.png', found)
      expect(await rowsOf(database)).toMatchObject(rows)
      expect(keysOf(await due(database, me))).toEqual(isDue ? ['a.png'] : [])
      await database.tx(db => db.run(sql`update objects set retry_at = 1 where retry_at is not null`))
      expect((await open(database, me)).length, 'asked again').toBe(found === 'unasked' ? 1 : 0)
    },
  )

  it('that a dead process was storing are found however many others are being stored', async context => {
    const { database, me, other } = await setUp(context)
    const dead = await newOwnerIn(database)
    for (let n = 0; n < 20; n++) await start(database, other, want(`a${n}.png`, 'A'))
    await start(database, dead.id, want('z.png', 'A'))
    await kill(database, dead.id)
    const found = await database.tx(db => takeOpen(db, me, [AT.destination], 1))
    expect(found).toMatchObject([{ key: 'z.png' }])
  })

  it('whose replacement has no known outcome keep their row, and their content is unknown', async context => {
    const { database, me, other } = await setUp(context)
    await store(database, me, want('a.png', 'A'))
    await start(database, other, want('a.png', 'B', { onConflict: 'replace' }))
    await kill(database, other)
    await open(database, me)
    await settle(database, me, '/srv/blog/a.png', 'something')
    expect(await rowsOf(database)).toMatchObject([{ state: 'stored', holder: null, sha256: '' }])
  })

  it('are given to be removed once they are due, each to one of many that ask', async context => {
    const place = await make(context)
    const databases = [place.open(), place.open(), place.open()]
    const [database] = databases as [Database]
    const owners = [await newOwnerIn(database), await newOwnerIn(database), await newOwnerIn(database)]
    const me = owners[0]!.id
    const keys = Array.from({ length: 40 }, (_, n) => `k${n}.png`).sort()
    await store(database, me, ...keys.map(key => want(key, key, { expiresAt: PAST })))
    const others = [want('later.png', 'X', { expiresAt: PAST + 1 }), want('stays.png', 'Y')]
    await store(database, me, ...others)
    expect(await due(database, me, PAST - 1)).toEqual([])
    expect(await database.read(db => countDue(db, PAST, [AT.destination], 30))).toBe(30)
    const taken = await Promise.all(databases.map((one, n) => due(one, owners[n]!.id, PAST)))
    expect(keysOf(taken.flat())).toEqual(keys)
    await noteRemoved(
      database,
      taken.flat().map(({ name }) => name),
    )
    expect(keysOf(await rowsOf(database))).toEqual(['later.png', 'stays.png'])
    const gone = await database.read(db => findFiles(db, { isRemoved: true, limit: 100 }))
    expect(keysOf(gone)).toEqual(keys)
  })

  it('are not removed while they are stored, and not stored while they are removed', async context => {
    const { database, me, other } = await setUp(context)
    const wanted = want('a.png', 'A', { expiresAt: PAST, onConflict: 'replace' })
    await store(database, me, wanted)
    const begun = await start(database, other, wanted)
    expect(await due(database, me)).toEqual([])
    const remove = (owner: string) => database.tx(db => takeForRemoval(db, owner, ['/srv/blog/a.png']))
    expect(await remove(me)).toEqual(new Set())
    await end(database, begun)
    expect(await due(database, me)).toHaveLength(1)
    expect(await remove(other)).toEqual(new Set())
    expect(await remove(me), 'nor a second time by the same process').toEqual(new Set())
    const { claims, claimant } = await start(database, other, wanted)
    expect(claims.map(show)).toEqual(['wait'])
    await noteRemoved(database, ['/srv/blog/a.png'])
    expect(show(await claimMore(database, claimant, wanted))).toBe('mine a.png')
  })

  it.for<[where: string, wanted: Wanted]>([
    ['at their key', want('a.png', 'A', { expiresAt: LATER })],
    ['at any key', want('b.png', 'A', { expiresAt: LATER, dedupe: true })],
  ])('do not expire between the claim to use them again %s and the end', async ([, wanted], context) => {
    const { database, me, other } = await setUp(context)
    await store(database, me, want('a.png', 'A', { expiresAt: PAST }))
    expect((await start(database, other, wanted)).claims.map(show)).toEqual(['same a.png'])
    expect(await due(database, me)).toEqual([])
  })

  it('the sweeper deleted 32 files of an S3 bucket in a round, because it took the same ones again', async context => {
    const { database, me, other } = await setUp(context)
    const keys = ['a.png', 'b.png', 'c.png', 'd.png']
    await store(database, me, ...keys.map(key => want(key, key, { expiresAt: PAST })))
    const taken = []
    for (const owner of [me, me, other, other, me]) taken.push(...(await due(database, owner, PAST, 1)))
    expect(keysOf(taken)).toEqual(keys)
  })

  it('that a dead process was removing can be removed again', async context => {
    const { database, me, other } = await setUp(context)
    await store(database, me, want('a.png', 'A', { expiresAt: PAST }))
    expect(await due(database, other)).toHaveLength(1)
    expect(await due(database, me)).toEqual([])
    await kill(database, other)
    expect(await due(database, me)).toHaveLength(1)
    await database.tx(db => releaseRemovals(db, me))
    expect(await due(database, me)).toHaveLength(1)
  })

  it('that a dead process was removing say nothing of another spelling, which may be of somebody else', async context => {
    const { database, me, other } = await setUp(context)
    await store(database, me, want('A.png', 'A', { expiresAt: PAST }))
    await due(database, other)
    await kill(database, other)
    const { claims, claimant } = await start(database, me, want('a.png', 'A'))
    expect(claims).toMatchObject([{ key: 'a.png', mayExist: true }])
    await database.tx(db => noteLook(db, claimant, '/srv/blog/a.png', 'foreign'))
    expect(await due(database, me), 'and it was removed').toEqual([])
  })

  it('a process that paused while it removed an object marks no later one as removed', async context => {
    const { database, me, other } = await setUp(context)
    await store(database, me, want('a.png', 'A', { expiresAt: PAST }))
    const [object] = await due(database, other)
    await kill(database, other)
    await due(database, me)
    await noteRemoved(database, [object!.name])
    await store(database, me, want('a.png', 'A'))
    await noteRemoved(database, [object!.name])
    expect(await database.read(db => findFiles(db, { isRemoved: false, limit: 9 }))).toHaveLength(1)
    expect(await rowsOf(database)).toHaveLength(1)
  })

  it('are tried again when that is due, or when the clock was set back', async context => {
    const { database, me } = await setUp(context)
    await store(database, me, want('a.png', 'A', { expiresAt: PAST }))
    const fail = async (now: number, retryAt: number) => {
      const [object] = await due(database, me, now)
      await postpone(database, me, object!.name, { retryAt, problem: 'it is down' })
    }
    await fail(20, 500)
    expect(await due(database, me, 499)).toEqual([])
    expect(await database.read(db => overdue(db, 499, [AT.destination], 9))).toEqual([
      { destination: AT.destination, key: 'a.png', dueAt: PAST, attempts: 1, problem: 'it is down' },
    ])
    await fail(500, 50_000)
    expect(await due(database, me, 600)).toMatchObject([{ attempts: 2 }])
  })

  it('that were not tried because of the shutdown count no attempt', async context => {
    const { database, me } = await setUp(context)
    await store(database, me, want('a.png', 'A', { expiresAt: PAST }))
    const [object] = await due(database, me)
    await postpone(database, me, object!.name)
    expect(await due(database, me)).toMatchObject([{ attempts: 0 }])
  })

  it('are the same content for an upload that gives the URL of this content, not of a later one', async context => {
    const { database, me } = await setUp(context)
    await store(database, me, want('a.png', 'A'))
    await store(database, me, want('a.png', 'B', { onConflict: 'replace' }))
    await database.tx(db => db.run(sql`update files set upload = '0', url = 'of B' where sha256 = 'B'`))
    const { claims } = await start(database, me, want('a.png', 'B'))
    expect(claims).toMatchObject([{ is: 'same', url: 'of B' }])
  })

  it('are one object, however many destinations reach it', async context => {
    const { database, me, other } = await setUp(context)
    const around = want('a.png', 'A', {
      destination: 'local/around',
      location: '/srv/blog/x/',
      expiresAt: LATER,
    })
    await store(database, me, want('x/a.png', 'A', { expiresAt: PAST }))
    const { claims } = await start(database, other, { ...around, sha256: 'B' })
    expect(claims.map(show)).toEqual(['mine a-2.png'])
    await database.tx(db => db.run(sql`update objects set key = 'a.png' where key = 'x/a.png'`))
    expect((await start(database, other, around)).claims.map(show)).toEqual(['same a.png'])
    expect(await due(database, me)).toEqual([])
  })

  it('with error give the same link only if nobody has it', async context => {
    const { database, me } = await setUp(context)
    const wanted = want('a.png', 'A', { onConflict: 'error' })
    await store(database, me, wanted)
    expect((await start(database, me, wanted)).claims.map(show)).toEqual(['conflict a.png'])
    await database.tx(db => db.run(sql`update uploads set state = 'failed'`))
    expect((await start(database, me, wanted)).claims.map(show)).toEqual(['same a.png'])
  })
})
