/** What is used of kysely. The build puts it into this one module: by itself kysely loads 262 files. */
export {
  type CompiledQuery,
  type Dialect,
  Kysely,
  PostgresDialect,
  type PostgresPool,
  type RawBuilder,
  type Selectable,
  SqliteDialect,
  type SqliteStatement,
  sql,
  type Transaction,
} from 'kysely'
