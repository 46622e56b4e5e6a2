/** Version of the tables below. Raise it with each change: a database keeps the version that it was made with. */
export const SCHEMA_VERSION = 2

/**
 * The tables. Times are milliseconds since the epoch by the clock of the database, lists are JSON text.
 *
 * | Table | A row is | Written |
 * |---|---|---|
 * | `uploads` | one request to upload; its ID is the `finalizationId` | when it begins, and when it ends |
 * | `requests` | an `Idempotency-Key` and the upload that it began | when the upload begins |
 * | `objects` | one object at a location: its lock, its content and when it expires | when an upload claims it, and when it is stored |
 * | `files` | one stored file: the history | when the upload ends |
 * | `quotas` | what one client has used in one window | when an upload begins |
 * | `owners` | one process, its last sign of life, and what it serves if it is a server | every few seconds |
 *
 * `objects.name` is the location and the folded key, so that spellings that are one file on some disks are one object.
 * `objects.state`: `storing` while an upload sends it; `stored`; `removing` while it is removed. `objects.holder` is the upload
 * or the process that stores or removes it. `objects.is_new` says that nothing was there before. `objects.sha256` is empty if the
 * content is not known. A row that is `storing` without a holder is a transfer whose outcome is not known: the same content may be
 * stored there again. `objects.following` is the next number to try if the key is in use.
 */
export const SCHEMA: readonly string[] = [
  'create table owners (id text primary key, seen_at bigint not null, serves text)',
  `create table uploads (
    id text primary key, state text not null, owner text not null, created_at bigint not null, ended_at bigint,
    caller text not null, destination text not null, request_id text not null, origins text not null,
    outcomes text not null, steps text not null, attempts integer not null, due_at bigint, problem text, reserved text not null)`,
  'create index uploads_open on uploads (owner) where ended_at is null',
  `create table requests (
    key text primary key, fingerprint text not null, upload text not null, seed text not null, created_at bigint not null)`,
  'create index requests_created on requests (created_at)',
  `create table objects (
    name text primary key, destination text not null, location text not null, key text not null, sha256 text not null, state text not null,
    holder text, is_new integer not null, stored_at bigint, expires_at bigint, retry_at bigint, attempts integer not null,
    problem text, following integer not null)`,
  'create index objects_due on objects (expires_at) where expires_at is not null',
  'create index objects_held on objects (holder) where holder is not null',
  `create table files (
    upload text not null, position integer not null, destination text not null, location text not null, object text not null,
    key text not null, url text not null, delete_url text, size bigint not null, content_type text not null,
    sha256 text not null, origin text not null, caller text not null, request_id text not null,
    expires_at bigint, removed_at bigint, primary key (upload, position, destination))`,
  'create index files_caller on files (caller, upload)',
  'create index files_object on files (object, upload)',
  'create index files_sha256 on files (sha256, upload)',
  // PostgreSQL accepts no entry of an index above 2704 bytes.
  "create index files_reviews on files (caller, origin, upload) where origin like '%.review.json' and length(origin) < 200",
  `create table quotas (
    client text not null, window_ms bigint not null, starts_at bigint not null, files bigint not null, bytes bigint not null,
    primary key (client, window_ms, starts_at))`,
]
