/** The tests of ../../store that run with any database, with PostgreSQL. */

process.env['DATABASE_ENGINES'] = 'postgres'
for (const name of ['database', 'history', 'model', 'objects', 'owners', 'uploads'])
  await import(`../../store/${name}.test.ts`)

export {}
