import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { findJob, readPullRequestUrl, tokenOf } from '../../../src/client/comments/ci-job.ts'
import { makeDirectory } from '../../helpers/directory.ts'

/** Variables, as the CI providers document them: `A=b C=d`. */
const envOf = (variables: string): Record<string, string> =>
  Object.fromEntries(
    variables.split(/\s+/).map(one => {
      const [name = '', value = ''] = one.split(/=(.*)/s)
      return [name, decodeURIComponent(value)]
    }),
  )

const ACTIONS = {
  ...envOf('GITHUB_ACTIONS=true GITHUB_API_URL=https://api.github.com GITHUB_REPOSITORY=me/app'),
  ...envOf('GITHUB_REF=refs/pull/7/merge GITHUB_WORKFLOW=CI GITHUB_JOB=e2e GITHUB_TOKEN=t'),
  ...envOf('GITHUB_RUN_NUMBER=12 GITHUB_RUN_ATTEMPT=2'),
}
const CODEBERG = 'https://codeberg.org/api/v1'
const FORGEJO = {
  ...ACTIONS,
  ...{ FORGEJO_ACTIONS: 'true', GITHUB_API_URL: CODEBERG, GITHUB_REF: 'refs/pull/7/head' },
}
const GITLAB = envOf('GITLAB_CI=true CI_API_V4_URL=https://gitlab.com/api/v4 CI_PROJECT_ID=1')
const OF_FORK =
  'CI_MERGE_REQUEST_PROJECT_ID=2 CI_MERGE_REQUEST_IID=7 CI_JOB_NAME=e2e%201/3 CI_NODE_INDEX=1 CI_PIPELINE_IID=12'
const WOODPECKER = envOf(
  'CI=woodpecker CI_REPO=me/app CI_COMMIT_PULL_REQUEST=7 CI_WORKFLOW_NAME=test CI_STEP_NAME=e2e CI_PIPELINE_NUMBER=12',
)
const JENKINS =
  'JENKINS_URL=https://ci CHANGE_URL=https://github.com/me/app/pull/7 STAGE_NAME=e2e BUILD_NUMBER=12'

const GITHUB_PULL = { forge: 'github', api: 'https://api.github.com', repo: 'me/app', pull: 7 }
const GITEA_PULL = { ...GITHUB_PULL, forge: 'gitea', api: CODEBERG }
const GITLAB_PULL = { forge: 'gitlab', api: 'https://gitlab.com/api/v4', pull: 7 }

describe('a job of', () => {
  it.each<[string, Record<string, string>, object]>([
    ['GitHub Actions', ACTIONS, { pullRequest: GITHUB_PULL, name: 'CI / e2e', run: 12_002 }],
    [
      'GitHub Actions, in one of two steps',
      { ...ACTIONS, GITHUB_ACTION: '__run_2' },
      { name: 'CI / e2e / __run_2' },
    ],
    [
      'GitHub Actions for a branch',
      { ...ACTIONS, GITHUB_REF: 'refs/heads/main' },
      { pullRequest: undefined },
    ],
    ['Forgejo Actions', FORGEJO, { pullRequest: GITEA_PULL }],
    [
      'GitLab, for a merge request of a fork',
      { ...GITLAB, ...envOf(OF_FORK) },
      { pullRequest: { ...GITLAB_PULL, repo: '2' }, name: 'e2e', part: '1', run: 12 },
    ],
    [
      'GitLab, for a branch with open merge requests',
      { ...GITLAB, CI_PROJECT_PATH: 'a/b/c', CI_OPEN_MERGE_REQUESTS: 'a/b/c!7,a/b/c!9' },
      { pullRequest: { ...GITLAB_PULL, repo: 'a/b/c' }, isFork: false },
    ],
    [
      'Woodpecker',
      { ...WOODPECKER, CI_FORGE_TYPE: 'forgejo', CI_FORGE_URL: 'https://codeberg.org' },
      { pullRequest: GITEA_PULL, name: 'test / e2e', run: 12 },
    ],
    ['Jenkins', envOf(JENKINS), { pullRequest: GITHUB_PULL, name: 'e2e', run: 12 }],
    [
      'attack: the token of another host would be sent to that of Woodpecker with bitbucket.org',
      { ...WOODPECKER, CI_FORGE_TYPE: 'bitbucket', CI_FORGE_URL: 'https://bitbucket.org' },
      { home: undefined, pullRequest: undefined },
    ],
  ])('%s', async (_, env, expected) => {
    expect(await findJob(env)).toMatchObject(expected)
  })

  it.each([
    ['pull_request_target', { pull_request: { number: 7 } }],
    ['issue_comment', { issue: { number: 7, pull_request: {} } }],
    ['workflow_run', { workflow_run: { pull_requests: [{ number: 7 }] } }],
  ])('GitHub Actions started by %s', async (_, event) => {
    const file = join(await makeDirectory(), 'event.json')
    await writeFile(file, JSON.stringify(event))
    const job = await findJob({ ...ACTIONS, GITHUB_REF: 'refs/heads/main', GITHUB_EVENT_PATH: file })
    expect(job?.pullRequest).toEqual(GITHUB_PULL)
  })

  it.each<[string, Record<string, string>, object, boolean]>([
    ['a fork', ACTIONS, pullFrom({ full_name: 'somebody/app' }), true],
    ['a fork that was deleted', ACTIONS, pullFrom(null), true],
    ['a branch', ACTIONS, pullFrom({ full_name: 'me/app' }), false],
    ['a push', ACTIONS, {}, false],
    [
      'a fork at GitLab',
      { ...GITLAB, ...envOf(`${OF_FORK} CI_MERGE_REQUEST_SOURCE_PROJECT_ID=3`) },
      {},
      true,
    ],
    [
      'a branch at GitLab',
      { ...GITLAB, ...envOf(`${OF_FORK} CI_MERGE_REQUEST_SOURCE_PROJECT_ID=2`) },
      {},
      false,
    ],
    ['a fork at Jenkins', { JENKINS_URL: 'https://ci', CHANGE_FORK: 'somebody' }, {}, true],
  ])('says whether it comes from a fork: %s', async (_, env, event, isFork) => {
    const file = join(await makeDirectory(), 'event.json')
    await writeFile(file, JSON.stringify(event))
    expect(await findJob({ ...env, GITHUB_EVENT_PATH: file })).toMatchObject({ isFork })
  })

  it('has the token of its own Git host only', () => {
    const gitLab = { GITLAB_TOKEN: 't' }
    expect([tokenOf(ACTIONS, 'github'), tokenOf(ACTIONS, 'gitea'), tokenOf(gitLab, 'gitlab')]).toEqual([
      ...['t', 't', 't'],
    ])
    expect([tokenOf({ GITHUB_TOKEN: 't' }, 'gitea'), tokenOf(ACTIONS, 'gitlab')]).toEqual([
      undefined,
      undefined,
    ])
  })

  it('nobody that is known', async () => {
    expect(await findJob({ CI: 'true' })).toBeUndefined()
  })
})

/** The event of a pull request from a repository. */
function pullFrom(repo: object | null): object {
  return { pull_request: { head: { repo }, base: { repo: { full_name: 'me/app' } } } }
}

describe('the address of a pull request', () => {
  it.each([
    ['https://github.com/me/app/pull/7', 'github', 'https://api.github.com', 'me/app'],
    ['https://ghe.example.com/me/app/pull/7/', 'github', 'https://ghe.example.com/api/v3', 'me/app'],
    ['https://example.com/git/me/app/pulls/7', 'gitea', 'https://example.com/git/api/v1', 'me/app'],
    ['https://gitlab.com/a/b/c/-/merge_requests/7', 'gitlab', 'https://gitlab.com/api/v4', 'a/b/c'],
  ])('%s', (address, forge, api, repo) => {
    expect(readPullRequestUrl(address)).toEqual({ forge, api, repo, pull: 7 })
  })

  it.each([
    '',
    'me/app#7',
    'https://github.com/me/app/issues/7',
    'https://github.com/me/app/pull/x',
    'https://github.com/app/pull/7',
    'ftp://github.com/me/app/pull/7',
  ])('is not "%s"', address => {
    expect(() => readPullRequestUrl(address)).toThrow('is not the URL of a pull request')
  })
})
