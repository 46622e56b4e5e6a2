import type { Context } from './context.ts'

/** Variables that identify a CI run. Running a job of it again keeps their values. */
const VARIABLES = [
  ['GITHUB_SERVER_URL', 'GITHUB_REPOSITORY', 'GITHUB_RUN_ID'], // Gitea's and Forgejo's runners set these, too.
  ['CI_PROJECT_URL', 'CI_PIPELINE_ID'],
  ['BUILDKITE_BUILD_ID'],
  ['CI_REPO_URL', 'CI_PIPELINE_NUMBER'],
  ['BUILD_URL'],
]

/** Identifies the run of a CI provider, with all of its jobs. Undefined outside of one. */
export function runIdOf(env: Context['env']): string | undefined {
  const names = VARIABLES.find(all => all.every(name => env[name]))
  return names && JSON.stringify(names.map(name => env[name]))
}
