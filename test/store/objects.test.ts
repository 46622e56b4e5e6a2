import { describe, expect } from 'vitest'
import { type Claim, noteLook, retake, type Wanted } from '../../src/store/claims.ts'
import type { Database } from '../../src/store/database.ts'
import { findFiles } from '../../src/store/history.ts'
import { countDue, noteRemoved, overdue, postpone, releaseRemovals } from '../../src/store/removals.ts'
import { sql } from '../../src/store/sql.ts'
import { claimMore } from '../../src/store/uploads.ts'
import { AT, newActor, storeTest, urlOf, want } from '../helpers/stores.ts'

const it = storeTest()

const HOUR_MS = 3_600_000
const LATER = Date.now() + HOUR_MS
const PAST = 10
const A_PNG = '/srv/blog/a.png'

const rowsOf = (database: Database) =>
  database.read(db =>
    db.all<{ key: string; state: string; holder: string | null; sha256: string; expires_at: number | null }>(
      sql`select key, state, holder, sha256, expires_at from objects order by name`,
    ),
  )
const keysOf = (objects: readonly { key: string }[]) => objects.map(({ key }) => key).sort()

const A = want('a.png', 'A')
const B = want('a.png', 'B')
const replace = (one: Wanted): Wanted => ({ ...one, onConflict: 'replace' })
const until = (expiresAt: number | null, one = A): Wanted => ({ ...one, expiresAt })

describe('an object is claimed', () => {
  it.for<[what: string, stored: Wanted[], wanted: Wanted[], expected: string[]]>([
    ['for the same content', [A], [A], ['same a.png']],
    ['for other content', [A], [B], ['mine a-2.png']],
    ['for another spelling', [A], [want('A.PNG', 'A')], ['mine A-2.PNG']],
    ['for the same content under a number', [A, B], [B], ['same a-2.png']],
    [
      'for two files whose short hashes are the same',
      [],
      [want('a-bce48b20.txt', 'A'), want('a-bce48b20.txt', 'B')],
      ['mine a-bce48b20.txt', 'mine a-bce48b20-2.txt'],
    ],
    [
      'for a file whose number is the key of the next one',
      [want('a.png', 'X')],
      [A, want('a-2.png', 'A')],
      ['mine a-3.png', 'mine a-2.png'],
    ],
    ['to replace it', [A], [replace(B)], ['mine a.png']],
    ['to replace it with the same content', [A], [replace(A)], ['mine a.png']],
    [
      'by two contents that replace: the number replaces nothing',
      [want('a-2.png', 'X')],
      [replace(A), replace(B)],
      ['mine a.png', 'mine a-3.png'],
    ],
    [
      'to replace the same short hash of other content',
      [A],
      [{ ...replace(B), isContentKey: true }],
      ['mine a-2.png'],
    ],
    ['with a conflict', [A], [{ ...B, onConflict: 'error' }], ['conflict a.png']],
    ['by the same content at any key', [A], [want('b.png', 'A', { dedupe: true })], ['same a.png']],
    ['at a location of its own', [A], [{ ...B, location: '/x/' }], ['mine a.png']],
  ])('%s', async ([, stored, wanted, expected], { me, other }) => {
    for (const one of stored) await other.store(one)
    expect(await me.claim(...wanted)).toEqual(expected)
  })

  it.for<[content: string, onConflict: Wanted['onConflict'], expected: string]>([
    ['A', 'rename', 'mine a.png'],
    ['B', 'rename', 'mine a-2.png'],
    ['B', 'replace', 'mine a.png'],
    ['B', 'error', 'conflict a.png'],
  ])(
    'after the death of its process, with %s and %s: %s',
    async ([content, onConflict, expected], { me, other }) => {
      await other.start(A)
      await other.die()
      expect(await me.claim(want('a.png', content, { onConflict }))).toEqual([expected])
    },
  )

  it('with error gives the same link only if nobody has it', async ({ database, me }) => {
    const wanted: Wanted = { ...A, onConflict: 'error' }
    await me.store(wanted)
    expect(await me.claim(wanted)).toEqual(['conflict a.png'])
    await database.tx(db => db.run(sql`update uploads set state = 'failed'`))
    expect(await me.claim(wanted)).toEqual(['same a.png'])
  })

  it('as the 2000th image.png by as many statements as the second', async ({ database, me }) => {
    await me.store(want('image.png', '1'))
    let count = 0
    const counting = await newActor({
      ...database,
      tx: work =>
        database.tx(db => {
          const counted =
            <Q, R>(ask: (query: Q) => R) =>
            (query: Q) => {
              count++
              return ask(query)
            }
          return work({ ...db, all: counted(db.all) as typeof db.all, run: counted(db.run) })
        }),
    })
    const counts: number[] = []
    for (const n of [2, 3, 2000]) {
      if (n === 2000)
        await database.tx(db => db.run(sql`update objects set following = 2000 where key = 'image.png'`))
      count = 0
      expect(await counting.store(want('image.png', `${n}`))).toEqual([`mine image-${n}.png`])
      counts.push(count)
    }
    expect(new Set(counts).size, String(counts)).toBe(1)
    expect(counts[0]).toBeLessThan(16)
  })

  it('once for each content when two servers store 40 contents under one name at once', async ({ place }) => {
    const servers = [await newActor(place.open()), await newActor(place.open())]
    const claims = await Promise.all(
      Array.from({ length: 40 }, (_, n) => servers[n % 2]!.store(want('a.png', `${n}`))),
    )
    expect(new Set(claims.flat()).size).toBe(40)
  })
})

it('two servers begin requests of the same files in opposite orders, and each file is stored once', async ({
  place,
}) => {
  const servers = [await newActor(place.open()), await newActor(place.open())] as const
  for (let n = 0; n < 2; n++) {
    const keys = Array.from({ length: 8 }, (_, one) => `${n}/${one}.png`)
    const wanted = keys.map(key => want(key, key, { isContentKey: true }))
    const shown = await Promise.all([servers[0].claim(...wanted), servers[1].claim(...wanted.reverse())])
    expect(
      shown
        .flat()
        .filter(one => one.startsWith('mine'))
        .sort(),
    ).toEqual(keys.map(key => `mine ${key}`))
  }
})

describe('an object that is being stored', () => {
  it('is waited for by the same content, and other content gets a number', async ({ me, other }) => {
    const first = await other.start(A)
    const second = await me.start(A, B)
    expect(second.shown).toEqual(['wait', 'mine a-2.png'])
    await first.end()
    const again = await second.claimMore(A)
    expect(again).toEqual({
      ...{ is: 'same', name: A_PNG, key: 'a.png' },
      ...{ url: urlOf('a.png'), deleteUrl: undefined },
    })
  })

  it('is free if it could not be stored, but not if a transfer may still write it', async ({
    database,
    me,
    other,
  }) => {
    await (await other.start(A, want('b.png', 'B'))).end(['/srv/blog/b.png'])
    expect(await me.claim(want('a.png', 'X'), want('b.png', 'B'), want('b.png', 'X'))).toEqual([
      ...['mine a.png', 'wait', 'mine b-2.png'],
    ])
    await me.store(want('c.png', 'C'))
    await (await me.start(replace(want('c.png', 'D')))).end([])
    const row = (await rowsOf(database)).find(({ key }) => key === 'c.png')
    expect(row, 'its content is not known').toMatchObject({ state: 'stored', holder: null, sha256: '' })
  })

  it('keeps no content that was only to be stored: a removal that failed gave its link to other bytes', async ({
    database,
    me,
    other,
  }) => {
    await me.store(until(PAST))
    await other.start(replace(until(PAST, B)))
    await other.die()
    const [object] = await me.due()
    await postpone(database, me.id, object!.name, { retryAt: LATER, problem: 'it is down' })
    expect(await me.claim(B)).toEqual(['mine a-2.png'])
  })

  it('under a number, by a process that is dead, is taken by the same content', async ({ me, other }) => {
    await me.store(want('a.png', 'X'))
    await other.start(A)
    await other.die()
    const { shown, claims } = await me.start(B, A)
    expect(shown).toEqual(['mine a-3.png', 'mine a-2.png'])
    expect(claims[1], 'which something else may have').toMatchObject({ mayExist: true })
  })

  it.for<[found: 'nothing' | 'something' | 'unasked', wasAbsent: boolean, rows: object[], isDue: boolean]>([
    ['nothing', true, [], false],
    ['something', true, [{ state: 'storing', holder: '' }], true],
    ['something', false, [{ state: 'storing', holder: '', expires_at: null }], false],
    ['unasked', true, [{ state: 'storing', holder: '', expires_at: null }], false],
  ])(
    'by a process that is dead: %s is there, and before there was nothing: %s',
    async ([found, wasAbsent, rows, isDue], { database, me, other }) => {
      const { claimant } = await other.start(A)
      if (wasAbsent) await database.tx(db => noteLook(db, claimant, A_PNG, 'nothing'))
      expect(await me.open(), 'while it lives').toEqual([])
      await other.die()
      expect(await me.open()).toMatchObject([{ key: 'a.png' }])
      expect(await me.open(), 'only once').toEqual([])
      await me.settle(A_PNG, found)
      expect(await rowsOf(database)).toMatchObject(rows)
      expect(keysOf(await me.due())).toEqual(isDue ? ['a.png'] : [])
      await database.tx(db => db.run(sql`update objects set retry_at = 1 where retry_at is not null`))
      expect((await me.open()).length, 'asked again').toBe(found === 'unasked' ? 1 : 0)
    },
  )

  it('by a process that is dead is found however many others are being stored', async ({
    database,
    me,
    other,
  }) => {
    const dead = await newActor(database)
    for (let n = 0; n < 20; n++) await other.start(want(`a${n}.png`, 'A'))
    await dead.start(want('z.png', 'A'))
    await dead.die()
    expect(await me.open(1)).toMatchObject([{ key: 'z.png' }])
  })

  it('to replace another one, without a known outcome, keeps its row, and its content is unknown', async ({
    database,
    me,
    other,
  }) => {
    await me.store(A)
    await other.start(replace(B))
    await other.die()
    await me.open()
    await me.settle(A_PNG, 'something')
    expect(await rowsOf(database)).toMatchObject([{ state: 'stored', holder: null, sha256: '' }])
  })
})

describe('an object that the server did not store', () => {
  it('keeps its content, and is never removed', async ({ database, me }) => {
    const begun = await me.start(A)
    expect(begun.claims).toMatchObject([{ is: 'mine', mayExist: true }])
    await database.tx(db => noteLook(db, begun.claimant, A_PNG, 'foreign'))
    expect(await begun.claimMore(A)).toMatchObject({ is: 'mine', key: 'a-2.png' })
    expect((await rowsOf(database))[1]).toMatchObject({ key: 'a.png', state: 'stored', expires_at: null })
  })

  it('never expires when an upload replaces it', async ({ database, me }) => {
    const begun = await me.start(replace(until(PAST)))
    await database.tx(db => noteLook(db, begun.claimant, A_PNG, 'replaced'))
    await begun.end()
    expect(await me.due()).toEqual([])
  })

  it('is not taken for what a dead process has left if it was stored once', async ({
    database,
    me,
    other,
  }) => {
    const first = await me.start(A)
    await database.tx(db => noteLook(db, first.claimant, A_PNG, 'nothing'))
    await first.end()
    await other.start(replace(A))
    await other.die()
    expect((await me.start(A)).claims).toMatchObject([{ is: 'mine', mayExist: true }])
  })
})

describe('a stored object', () => {
  it('expires with the latest of its uploads', async ({ database, me }) => {
    for (const end of [LATER, LATER + 5, LATER + 2]) await me.store(until(end))
    expect(await rowsOf(database)).toMatchObject([{ expires_at: LATER + 5 }])
    await me.store(replace(until(LATER, B)))
    expect(await rowsOf(database), 'one that replaces keeps it').toMatchObject([
      { sha256: 'B', expires_at: LATER + 5 },
    ])
    for (const end of [null, LATER]) await me.store(until(end, B))
    expect(await rowsOf(database)).toMatchObject([{ expires_at: null }])
  })

  it('that has vanished is stored again under its key', async ({ database, me }) => {
    await me.store(A)
    const { claimant, claims } = await me.start(A)
    const same = claims[0] as Extract<Claim, { is: 'same' }>
    const again = () => database.tx(db => retake(db, claimant, same, A))
    expect(await again()).toEqual({ is: 'mine', name: same.name, key: 'a.png', mayExist: false })
    expect(await again(), 'only once').toEqual({ is: 'wait' })
  })

  it.for<[where: string, wanted: Wanted]>([
    ['at its key', until(LATER)],
    ['at any key', want('b.png', 'A', { expiresAt: LATER, dedupe: true })],
  ])(
    'does not expire between the claim to use it again %s and the end',
    async ([, wanted], { me, other }) => {
      await me.store(until(PAST))
      expect(await other.claim(wanted)).toEqual(['same a.png'])
      expect(await me.due()).toEqual([])
    },
  )

  it('gives the URL of this content, not of an earlier one', async ({ database, me }) => {
    await me.store(A)
    await me.store(replace(B))
    await database.tx(db => db.run(sql`update files set upload = '0', url = 'of B' where sha256 = 'B'`))
    expect((await me.start(B)).claims).toMatchObject([{ is: 'same', url: 'of B' }])
  })

  it('is one, however many destinations reach it', async ({ database, me, other }) => {
    const around = { destination: 'local/around', location: '/srv/blog/x/', expiresAt: LATER }
    await me.store(until(PAST, want('x/a.png', 'A')))
    expect(await other.claim({ ...B, ...around })).toEqual(['mine a-2.png'])
    await database.tx(db => db.run(sql`update objects set key = 'a.png' where key = 'x/a.png'`))
    expect(await other.claim({ ...A, ...around })).toEqual(['same a.png'])
    expect(await me.due()).toEqual([])
  })
})

describe('a removal', () => {
  it('of due objects is given to one of many that ask', async ({ place, database, me }) => {
    const actors = [me, await newActor(place.open()), await newActor(place.open())]
    const keys = Array.from({ length: 40 }, (_, n) => `k${n}.png`).sort()
    await me.store(...keys.map(key => want(key, key, { expiresAt: PAST })))
    await me.store(want('later.png', 'X', { expiresAt: PAST + 1 }), want('stays.png', 'Y'))
    expect(await me.due(PAST - 1)).toEqual([])
    expect(await database.read(db => countDue(db, PAST, [AT.destination], 30))).toBe(30)
    const taken = (await Promise.all(actors.map(one => one.due(PAST)))).flat()
    expect(keysOf(taken)).toEqual(keys)
    const names = taken.map(({ name }) => name)
    await noteRemoved(database, names)
    expect(keysOf(await rowsOf(database))).toEqual(['later.png', 'stays.png'])
    const gone = await database.read(db => findFiles(db, { isRemoved: true, limit: 100 }))
    expect(keysOf(gone)).toEqual(keys)
  })

  it('does not begin while the object is stored, nor does an upload meanwhile', async ({
    database,
    me,
    other,
  }) => {
    const wanted = replace(until(PAST))
    await me.store(wanted)
    const begun = await other.start(wanted)
    expect(await me.due()).toEqual([])
    expect(await me.remove(A_PNG)).toEqual(new Set())
    await begun.end()
    expect(await me.due()).toHaveLength(1)
    expect(await other.remove(A_PNG)).toEqual(new Set())
    expect(await me.remove(A_PNG), 'nor a second time by the same process').toEqual(new Set())
    const waiting = await other.start(wanted)
    expect(waiting.shown).toEqual(['wait'])
    await noteRemoved(database, [A_PNG])
    expect(await claimMore(database, waiting.claimant, wanted)).toMatchObject({ is: 'mine', key: 'a.png' })
  })

  it('the sweeper deleted 32 files of an S3 bucket in a round, because it took the same ones again', async ({
    me,
    other,
  }) => {
    const keys = ['a.png', 'b.png', 'c.png', 'd.png']
    await me.store(...keys.map(key => want(key, key, { expiresAt: PAST })))
    const taken = []
    for (const one of [me, me, other, other, me]) taken.push(...(await one.due(PAST, 1)))
    expect(keysOf(taken)).toEqual(keys)
  })

  it('by a process that is dead is taken over', async ({ database, me, other }) => {
    await me.store(until(PAST))
    expect(await other.due()).toHaveLength(1)
    expect(await me.due()).toEqual([])
    await other.die()
    expect(await me.due()).toHaveLength(1)
    await database.tx(db => releaseRemovals(db, me.id))
    expect(await me.due()).toHaveLength(1)
  })

  it('by a process that is dead says nothing of another spelling, which may be of somebody else', async ({
    database,
    me,
    other,
  }) => {
    await me.store(until(PAST, want('A.png', 'A')))
    await other.due()
    await other.die()
    const { claims, claimant } = await me.start(A)
    expect(claims).toMatchObject([{ key: 'a.png', mayExist: true }])
    await database.tx(db => noteLook(db, claimant, A_PNG, 'foreign'))
    expect(await me.due(), 'and it was removed').toEqual([])
  })

  it('by a process that paused marks no later object as removed', async ({ database, me, other }) => {
    await me.store(until(PAST))
    const [object] = await other.due()
    await other.die()
    await me.due()
    await noteRemoved(database, [object!.name])
    await me.store(A)
    await noteRemoved(database, [object!.name])
    expect(await database.read(db => findFiles(db, { isRemoved: false, limit: 9 }))).toHaveLength(1)
    expect(await rowsOf(database)).toHaveLength(1)
  })

  it('that fails is tried again when that is due, or when the clock was set back', async ({
    database,
    me,
  }) => {
    await me.store(until(PAST))
    const fail = async (now: number, retryAt: number) => {
      const [object] = await me.due(now)
      await postpone(database, me.id, object!.name, { retryAt, problem: 'it is down' })
    }
    await fail(20, 500)
    expect(await me.due(499)).toEqual([])
    expect(await database.read(db => overdue(db, 499, [AT.destination], 9))).toEqual([
      { destination: AT.destination, key: 'a.png', dueAt: PAST, attempts: 1, problem: 'it is down' },
    ])
    await fail(500, 50_000)
    const [object] = await me.due(600)
    expect(object).toMatchObject({ attempts: 2 })
    await postpone(database, me.id, object!.name)
    expect(await me.due(600), 'a shutdown is no attempt').toMatchObject([{ attempts: 2 }])
  })
})
