import type { ForgeAnswer, ForgeRequest } from './forge.ts'

export type ForgeKind = 'gitea' | 'gitlab'

export type Operation =
  | { kind: 'repo' }
  | { kind: 'branch'; name: string }
  | { kind: 'lookUp'; key: string; ref: string | null }
  | { kind: 'create' | 'update' | 'remove'; key: string }

type Change = Operation & { kind: 'create' | 'update' | 'remove' }

/** A file in the branch. */
export interface ForgeFile {
  readonly bytes: Buffer
  /** Git's name of the bytes. */
  readonly sha: string
  /** Name of the last commit that changed it. */
  readonly commit: string
}

/** What a forge answers with; see the documentation each dialect names. */
export interface ForgeState {
  readonly url: string
  readonly repo: string
  readonly branch: string
  readonly files: Map<string, ForgeFile>
}

/** How one forge speaks. */
export interface Dialect {
  /** Path of the API on the server. */
  readonly api: string
  /** The key behind an address for visitors. */
  visit(path: string, state: ForgeState): string | undefined
  /** Undefined for requests that the documentation does not know. */
  read(request: ForgeRequest, state: ForgeState): Operation | undefined
  isAuthorized(request: ForgeRequest, token: string): boolean
  readonly unauthorized: ForgeAnswer
  show(operation: Operation & { kind: 'repo' | 'branch' | 'lookUp' }, state: ForgeState): ForgeAnswer
  /** The answer to a commit that does not fit the state. */
  refuse(operation: Change, body: Record<string, unknown>, state: ForgeState): ForgeAnswer | undefined
  committed(operation: Change, state: ForgeState): ForgeAnswer
}

const CHANGES: Record<string, Change['kind']> = { POST: 'create', PUT: 'update', DELETE: 'remove' }

/** Segments of a path that are encoded as a whole, so that nothing in them means something to the server. */
function decode(path: string): string | undefined {
  const isEncoded = path.split('/').every(segment => /^[\w.~%-]+$/.test(segment))
  return isEncoded ? path.split('/').map(decodeURIComponent).join('/') : undefined
}

/** Reads `/repos/{owner}/{repo}/contents/{path}` and its neighbours, which Gitea has from GitHub. */
function readGitHubLike({ method, path, query }: ForgeRequest, root: string): Operation | undefined {
  if (!path.startsWith(root)) return undefined
  const rest = path.slice(root.length)
  if (rest === '') return method === 'GET' ? { kind: 'repo' } : undefined
  const [, place, inner = ''] = /^\/(contents|branches)\/(.+)$/.exec(rest) ?? []
  const name = decode(inner)
  if (name === undefined || place === undefined) return undefined
  if (place === 'branches') return method === 'GET' ? { kind: 'branch', name } : undefined
  if (method === 'GET') return { kind: 'lookUp', key: name, ref: query.get('ref') }
  const kind = CHANGES[method]
  return kind && { kind, key: name }
}

/** The entry of a file, or of the files in a folder, as Gitea shows them. */
function showEntry(key: string, state: ForgeState): object | undefined {
  const entry = (path: string, content: boolean) => {
    const file = state.files.get(path)
    return (
      file && {
        type: 'file',
        encoding: 'base64',
        size: file.bytes.length,
        name: path.slice(path.lastIndexOf('/') + 1),
        path,
        content: content ? file.bytes.toString('base64') : null,
        sha: file.sha,
        url: `${state.url}/contents/${path}`,
      }
    )
  }
  const inside = [...state.files.keys()].filter(path => path.startsWith(`${key}/`))
  return (
    entry(key, true) ?? (inside.length > 0 ? inside.map(path => entry(path, false) as object) : undefined)
  )
}

function visitBelow(prefix: string, path: string): string | undefined {
  return path.startsWith(prefix) ? decode(path.slice(prefix.length)) : undefined
}

/** Gitea 1.21: routers/api/v1/repo/file.go, services/repository/files, models/error.go. */
const gitea: Dialect = {
  api: '/api/v1',
  visit: (path, { repo, branch }) => visitBelow(`/${repo}/raw/branch/${branch}/`, path),
  read: (request, { repo }) => readGitHubLike(request, `/api/v1/repos/${repo}`),
  isAuthorized: ({ headers }, token) => headers.authorization === `token ${token}`,
  unauthorized: {
    status: 401,
    body: { message: 'invalid username, password or token', url: '/api/swagger' },
  },
  show(operation, state) {
    if (operation.kind === 'repo')
      return {
        status: 200,
        body: { id: 7, full_name: state.repo, empty: false, archived: false, permissions: { push: true } },
      }
    if (operation.kind === 'branch')
      return operation.name === state.branch
        ? { status: 200, body: { name: state.branch, protected: false, user_can_push: true } }
        : { status: 404, body: { message: `branch does not exist [name: ${operation.name}]` } }
    const entry = operation.ref === state.branch ? showEntry(operation.key, state) : undefined
    return entry
      ? { status: 200, body: entry }
      : { status: 404, body: { message: `object does not exist [id: , rel_path: ${operation.key}]` } }
  },
  refuse({ kind, key }, body, { files, branch }) {
    const file = files.get(key)
    if (body['branch'] !== branch)
      return { status: 404, body: { message: `branch does not exist [name: ${body['branch']}]` } }
    if (kind === 'create' && file)
      return { status: 422, body: { message: `repository file already exists [path: ${key}]` } }
    if (kind !== 'create' && !file)
      return { status: 404, body: { message: `repository file does not exist [path: ${key}]` } }
    if (file && body['sha'] !== file.sha)
      return {
        status: kind === 'remove' ? 400 : 422,
        body: { message: `sha does not match [given: ${body['sha']}, expected: ${file.sha}]` },
      }
    return undefined
  },
  committed: ({ kind, key }, state) => ({
    status: kind === 'create' ? 201 : 200,
    body: { content: showEntry(key, state) ?? null, commit: {}, verification: {} },
  }),
}

/** GitLab: doc/api/repository_files.md, lib/api/files.rb, app/services/files. */
const gitlab: Dialect = {
  api: '/api/v4',
  visit: (path, { repo, branch }) => visitBelow(`/${repo}/-/raw/${branch}/`, path),
  read({ method, path, query }, { repo }) {
    const root = `/api/v4/projects/${encodeURIComponent(repo)}`
    if (path === root && method === 'GET') return { kind: 'repo' }
    const [, place, inner = ''] =
      /^\/repository\/(files|branches)\/([^/]+)$/.exec(path.slice(root.length)) ?? []
    const name = path.startsWith(root) ? decode(inner) : undefined
    if (name === undefined || place === undefined) return undefined
    if (place === 'branches') return method === 'GET' ? { kind: 'branch', name } : undefined
    if (method === 'HEAD') return { kind: 'lookUp', key: name, ref: query.get('ref') }
    const kind = CHANGES[method]
    return kind && { kind, key: name }
  },
  isAuthorized: ({ headers }, token) => headers['private-token'] === token,
  unauthorized: { status: 401, body: { message: '401 Unauthorized' } },
  show(operation, { repo, branch, files }) {
    if (operation.kind === 'repo')
      return { status: 200, body: { id: 7, path_with_namespace: repo, empty_repo: false, archived: false } }
    if (operation.kind === 'branch')
      return operation.name === branch
        ? { status: 200, body: { name: branch, can_push: true } }
        : { status: 404, body: { message: '404 Branch Not Found' } }
    const file = operation.ref === branch ? files.get(operation.key) : undefined
    if (!file) return { status: 404, body: { message: '404 File Not Found' } }
    const headers = {
      'X-Gitlab-Blob-Id': file.sha,
      'X-Gitlab-Size': String(file.bytes.length),
      'X-Gitlab-Last-Commit-Id': file.commit,
      'X-Gitlab-Encoding': 'base64',
    }
    return { status: 200, headers, body: '' }
  },
  refuse({ kind, key }, body, { files, branch }) {
    const refuse = (message: string) => ({ status: 400, body: { message } })
    const file = files.get(key)
    const last = body['last_commit_id']
    if (body['branch'] !== branch) return refuse('You can only create or edit files when you are on a branch')
    if (kind !== 'remove' && body['encoding'] !== 'base64') return refuse('this would be stored as text')
    if (kind === 'create') return file && refuse('A file with this name already exists')
    if (!file) return refuse("A file with this name doesn't exist")
    return last !== undefined && last !== file.commit
      ? refuse('You are attempting to update a file that has changed since you started editing it.')
      : undefined
  },
  committed: ({ kind, key }, { branch }) =>
    kind === 'remove'
      ? { status: 204, body: '' }
      : { status: kind === 'create' ? 201 : 200, body: { file_path: key, branch } },
}

export const DIALECTS: Readonly<Record<ForgeKind, Dialect>> = { gitea, gitlab }
