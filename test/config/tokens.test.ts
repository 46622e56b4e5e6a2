import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { ConfigError, loadConfig } from '../../src/config/load.ts'
import { findTokenRisks } from '../../src/config/tokens.ts'
import { makeDirectory } from '../helpers/directory.ts'

const BASE = { name: 'ci', audience: 'https://img.example.com' }
const GITHUB = { ...BASE, preset: 'github-actions', claims: { repository_owner_id: ['1234'] } }
const ORG = 'https://oidc.circleci.com/org/0f5c'

async function load(...tokens: unknown[]) {
  const directory = await makeDirectory()
  const file = join(directory, 'upload-server.json')
  const providers = { local: { Default: { directory: 'pictures', serve: true } } }
  await writeFile(join(directory, 'jwks.json'), '{"keys":[{"kty":"RSA"}]}')
  await writeFile(join(directory, 'none.json'), '{"keys":[]}')
  await writeFile(file, JSON.stringify({ auth: { tokens }, providers }))
  return (await loadConfig({ env: {}, platform: 'linux', cwd: directory, file })).settings.auth.tokens
}

/** All problems, as `path: message`. */
async function problemsOf(...tokens: unknown[]): Promise<string> {
  try {
    await load(...tokens)
    return ''
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return error.problems.join('\n')
  }
}

describe('is accepted:', () => {
  it.each<[what: string, entry: object]>([
    ['GitHub by the ID of the owner', GITHUB],
    ['GitHub by the name of a repository', { ...GITHUB, claims: { repository: ['acme/site'] } }],
    ['GitHub by the repositories of an owner', { ...GITHUB, claims: { repository: ['acme/*'] } }],
    [
      'GitHub by owner, with a pattern of repositories beside',
      { ...GITHUB, claims: { repository_owner_id: ['1'], repository: ['*/img'] } },
    ],
    ['GitLab by project', { ...BASE, preset: 'gitlab', claims: { project_id: ['22'] } }],
    ['a GitLab of one’s own', { ...BASE, preset: 'gitlab', issuer: 'https://git.example.com' }],
    ['Buildkite', { ...BASE, preset: 'buildkite', claims: { organization_slug: ['acme'] } }],
    [
      'CircleCI by project',
      { ...BASE, preset: 'circleci', issuer: ORG, claims: { 'oidc.circleci.com/project-id': ['p'] } },
    ],
    [
      'CircleCI by origin',
      {
        ...BASE,
        preset: 'circleci',
        issuer: ORG,
        claims: { 'oidc.circleci.com/vcs-origin': ['github.com/acme/*'] },
      },
    ],
    ['Cloudflare Access', { ...BASE, preset: 'cloudflare-access', issuer: 'https://t.cloudflareaccess.com' }],
    ['Google IAP', { ...BASE, preset: 'google-iap' }],
    ['Pomerium', { ...BASE, preset: 'pomerium', issuer: 'https://img.example.com' }],
    [
      'Kubernetes by a file',
      { ...BASE, preset: 'kubernetes', issuer: 'https://kubernetes.default.svc', jwksFile: 'jwks.json' },
    ],
    [
      'another issuer',
      {
        ...BASE,
        issuer: 'https://id.example.com',
        jwksUrl: 'https://id.example.com/jwks',
        algorithms: ['ES256'],
        header: 'X-Id-Token',
        destinations: ['local'],
        sources: ['form'],
      },
    ],
  ])('%s', async (_, entry) => {
    expect(await problemsOf(entry)).toBe('')
  })
})

describe('is a configuration error:', () => {
  it.each<[what: string, entries: object[], problem: RegExp]>([
    ['GitHub without claims', [{ ...GITHUB, claims: {} }], /claims: must name your organization or proj/],
    ['GitHub by events only', [{ ...GITHUB, claims: { event_name: ['push'] } }], /must name your org/],
    [
      'GitHub by a workflow that everyone may call',
      [{ ...GITHUB, claims: { job_workflow_ref: ['acme/x/.github/workflows/y.yml@main'] } }],
      /must name your org/,
    ],
    ['any owner', [{ ...GITHUB, claims: { repository_owner: ['*'] } }], /has "\*" or an empty value/],
    ['an owner and any', [{ ...GITHUB, claims: { repository_owner_id: ['1', '*'] } }], /has "\*"/],
    ['an empty owner', [{ ...GITHUB, claims: { repository_owner_id: [''] } }], /an empty value/],
    ['owners that begin alike', [{ ...GITHUB, claims: { repository_owner: ['acme*'] } }], /must name/],
    ['repositories of any owner', [{ ...GITHUB, claims: { repository: ['*/site'] } }], /must name your/],
    ['any ID', [{ ...GITHUB, claims: { repository_id: ['12*'] } }], /must name your/],
    ['an empty list', [{ ...GITHUB, claims: { repository_owner_id: [] } }], /at least one value/],
    ['a number in place of a text', [{ ...GITHUB, claims: { repository_id: [12] } }], /must be a string/],
    [
      'GitHub’s sub',
      [{ ...GITHUB, claims: { ...GITHUB.claims, sub: ['repo:acme/site:*'] } }],
      /claims\.sub: must not be used for GitHub/,
    ],
    ['GitHub’s sub as the user', [{ ...GITHUB, user: '{sub}' }], /user: must not have "\{sub\}"/],
    [
      'GitHub without its preset and without an owner',
      [
        {
          ...BASE,
          issuer: 'https://token.actions.githubusercontent.com',
          jwksUrl: 'https://token.actions.githubusercontent.com/.well-known/jwks',
          algorithms: ['RS256'],
        },
      ],
      /must name your org/,
    ],
    ['GitLab without a project', [{ ...BASE, preset: 'gitlab', claims: { ref: ['main'] } }], /must name/],
    [
      'Buildkite by a pipeline name, which every organization can have',
      [{ ...BASE, preset: 'buildkite', claims: { pipeline_slug: ['deploy'] } }],
      /must name your org/,
    ],
    ['CircleCI without an issuer', [{ ...BASE, preset: 'circleci' }], /issuer: is missing/],
    ['CircleCI without a project', [{ ...BASE, preset: 'circleci', issuer: ORG }], /must name your/],
    ['Cloudflare Access without a team', [{ ...BASE, preset: 'cloudflare-access' }], /issuer: is missing/],
    ['Pomerium without a host', [{ ...BASE, preset: 'pomerium' }], /issuer: is missing/],
    ['Kubernetes without an issuer', [{ ...BASE, preset: 'kubernetes' }], /issuer: is missing/],
    ['two entries of one name', [GITHUB, GITHUB], /tokens\[1\]\.name: "ci" is already the name/],
    ['a name with a colon', [{ ...GITHUB, name: 'ci: root' }], /without a colon/],
    ['no audience', [{ ...GITHUB, audience: undefined }], /audience: is (?:missing|required)/],
    ['an empty audience', [{ ...GITHUB, audience: '' }], /audience/],
    ['plain http', [{ ...BASE, preset: 'gitlab', issuer: 'http://git.example.com' }], /https URL/],
    ['an issuer with a query', [{ ...BASE, preset: 'gitlab', issuer: 'https://a.example?b' }], /query/],
    [
      'nothing but an audience',
      [BASE],
      /issuer: is missing[\s\S]*algorithms: is missing[\s\S]*jwksUrl: is missing/,
    ],
    [
      'HS256',
      [{ ...BASE, issuer: 'https://a.example', jwksUrl: 'https://a.example', algorithms: ['HS256'] }],
      /algorithms/,
    ],
    ['an algorithm beside a preset', [{ ...GITHUB, algorithms: ['ES256'] }], /is set by the preset/],
    [
      'the header of upload keys',
      [
        {
          ...BASE,
          issuer: 'https://id.example.com',
          jwksUrl: 'https://id.example.com/jwks',
          algorithms: ['ES256'],
          header: 'Authorization',
        },
      ],
      /header: is a header in which tokens are sent by default\. Leave it out/,
    ],
    ['a header beside a preset', [{ ...GITHUB, header: 'X-Token' }], /is set by the preset/],
    ['two places of keys', [{ ...GITHUB, jwksUrl: 'https://a.example', jwksFile: 'jwks.json' }], /together/],
    ['a file that is missing', [{ ...GITHUB, jwksFile: 'gone.json' }], /jwksFile: can't be read/],
    ['a file without keys', [{ ...GITHUB, jwksFile: 'none.json' }], /jwksFile: has no keys/],
    ['a file that is not JSON', [{ ...GITHUB, jwksFile: '/etc/hostname' }], /jwksFile: is not JSON/],
    ['an unknown preset', [{ ...GITHUB, preset: 'github' }], /preset: must be/],
    ['a brace too many', [{ ...GITHUB, user: '{repository' }], /user: must be text with placeholders/],
    ['an unknown destination', [{ ...GITHUB, destinations: ['s3/ci'] }], /"s3\/ci" is not a destination/],
    ['an unknown option', [{ ...GITHUB, audiences: ['x'] }], /audiences/],
  ])('%s', async (_, entries, problem) => {
    expect(await problemsOf(...entries)).toMatch(problem)
  })
})

it.each<[what: string, entry: object, risk: RegExp]>([
  [
    'a name in place of an ID',
    { ...GITHUB, claims: { repository: ['acme/site'], event_name: ['push'] } },
    /^auth\.tokens\[0\]\.claims: "repository" is a name.*Add repository_owner_id, /,
  ],
  ['no list of events', GITHUB, /pull_request_target and workflow_run.*"event_name"/],
  [
    'events of forks',
    { ...GITHUB, claims: { repository_owner_id: ['1'], event_name: ['push', 'pull_request_target'] } },
    /pull_request_target/,
  ],
  [
    'a shared instance',
    { ...BASE, preset: 'gitlab', issuer: 'https://git.example.com' },
    /every job of http/,
  ],
  [
    'forks at CircleCI',
    { ...BASE, preset: 'circleci', issuer: ORG, claims: { 'oidc.circleci.com/project-id': ['p'] } },
    /jobs for forks.*vcs-origin/,
  ],
])('config validate warns of %s', async (_, entry, risk) => {
  expect(findTokenRisks(await load(entry)).join('\n')).toMatch(risk)
})

it('config validate does not warn of IDs and events', async () => {
  const claims = { repository_owner_id: ['1234'], event_name: ['push', 'pull_request'] }
  expect(findTokenRisks(await load({ ...GITHUB, claims }))).toEqual([])
  const iap = { ...BASE, name: 'iap', preset: 'google-iap' }
  expect(findTokenRisks(await load(iap))).toEqual([])
})
