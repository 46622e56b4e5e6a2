/** The tests of ../store/model.test.ts, with many sequences and both databases. */

process.env['DATABASE_ENGINES'] = 'sqlite,postgres'
process.env['MODEL_SEQUENCES'] ??= '500'
await import('../store/model.test.ts')

export {}
