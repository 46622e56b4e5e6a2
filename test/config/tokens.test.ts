import { expect, it } from 'vitest'
import { findTokenRisks } from '../../src/config/tokens.ts'
import { load as loadConfig } from '../helpers/load-config.ts'

const GITHUB = { preset: 'github-actions', claims: { repository_owner_id: ['1234'] } }
const GITLAB = { preset: 'gitlab', issuer: 'https://git.example.com' }
const CIRCLECI = { preset: 'circleci', issuer: 'https://oidc.circleci.com/org/0f5c' }

async function load(...entries: object[]) {
  const tokens = entries.map((entry, n) => ({ name: `n${n}`, audience: 'https://img.example', ...entry }))
  const files = { 'jwks.json': '{"keys":[{"kty":"RSA"}]}', 'none.json': '{"keys":[]}' }
  return (await loadConfig({ auth: { tokens } }, { files })).settings.auth.tokens
}

// What is not accepted is in test/fixtures/configurations.
it('accepts entries for each issuer that name an owner, or an issuer of one’s own', async () => {
  const accepted = [
    GITHUB,
    { ...GITHUB, claims: { repository: ['acme/site'] } },
    { ...GITHUB, claims: { repository: ['acme/*'] } },
    { ...GITHUB, claims: { repository_owner_id: ['1'], repository: ['*/img'] } },
    { preset: 'gitlab', claims: { project_id: ['22'] } },
    GITLAB,
    { preset: 'buildkite', claims: { organization_slug: ['acme'] } },
    { ...CIRCLECI, claims: { 'oidc.circleci.com/project-id': ['p'] } },
    { ...CIRCLECI, claims: { 'oidc.circleci.com/vcs-origin': ['github.com/acme/*'] } },
    { preset: 'cloudflare-access', issuer: 'https://t.cloudflareaccess.com' },
    { preset: 'google-iap' },
    { preset: 'pomerium', issuer: 'https://img.example.com' },
    { preset: 'kubernetes', issuer: 'https://kubernetes.default.svc', jwksFile: 'jwks.json' },
    {
      issuer: 'https://id.example.com',
      jwksUrl: 'https://id.example.com/jwks',
      algorithms: ['ES256'],
      header: 'X-Id-Token',
      destinations: ['local'],
      sources: ['form'],
    },
  ]
  expect(await load(...accepted)).toHaveLength(accepted.length)
})

it.each([
  ['gone.json', "can't be read"],
  ['none.json', 'has no keys'],
  ['/etc/hostname', 'is not JSON'],
])('the file of keys %s %s', async (jwksFile, problem) => {
  await expect(load({ ...GITHUB, jwksFile })).rejects.toThrow(`auth.tokens[0].jwksFile: ${problem}`)
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
  ['a shared instance', GITLAB, /every job of http/],
  [
    'forks at CircleCI',
    { ...CIRCLECI, claims: { 'oidc.circleci.com/project-id': ['p'] } },
    /jobs for forks.*vcs-origin/,
  ],
  [
    'nothing: IDs and events',
    { ...GITHUB, claims: { repository_owner_id: ['1234'], event_name: ['push', 'pull_request'] } },
    /^$/,
  ],
  ['nothing: Google IAP', { preset: 'google-iap' }, /^$/],
])('config validate warns of %s', async (_, entry, risk) => {
  expect(findTokenRisks(await load(entry)).join('\n')).toMatch(risk)
})
