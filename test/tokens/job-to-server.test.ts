import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { runCli } from '../cli/run-cli.ts'
import { makeDirectory } from '../helpers/directory.ts'
import { findFreePorts } from '../helpers/free-port.ts'
import { startApp } from '../helpers/start-app.ts'
import { makeKey, sign, startKeyServer } from '../servers/key-server.ts'
import { serve } from '../uploader/sources/servers.ts'

const OURS = { repository: 'acme/app', repository_owner_id: '1234', event_name: 'push' }

/**
 * A server that accepts jobs of one owner, each repository with five files a day, and GitHub, which gives a job a URL that
 * signs a token for an audience.
 */
async function start() {
  const key = await makeKey()
  const { url: issuer } = await startKeyServer([key])
  const port = await findFreePorts()
  const entry = {
    name: 'actions',
    preset: 'github-actions',
    issuer,
    audience: `http://127.0.0.1:${port}`,
    claims: { repository_owner_id: ['1234'], event_name: ['push', 'pull_request'] },
    quota: { files: 5, per: '1d' },
    fileSize: '1MB',
  }
  const server = { port, strictPort: true }
  const app = await startApp({ config: { server, auth: { loopbackExempt: false, tokens: [entry] } } })
  const audiences: (string | null)[] = []

  async function startJob(claims: object = OURS, livesS = 300) {
    const { origin } = await serve(async (req, res) => {
      const aud = new URL(req.url ?? '', 'http://x').searchParams.get('audience')
      audiences.push(aud)
      const exp = Math.floor(Date.now() / 1000) + livesS
      res.end(JSON.stringify({ value: await sign(key, { iss: issuer, aud: aud ?? '', exp, ...claims }) }))
    })
    const env = {
      CI: 'true',
      GITHUB_ACTIONS: 'true',
      ACTIONS_ID_TOKEN_REQUEST_URL: `${origin}/token?api-version=2.0`,
      ACTIONS_ID_TOKEN_REQUEST_TOKEN: 'request-token',
    }
    return async (count: number, size = 70_000) => {
      const cwd = await makeDirectory()
      const files = Array.from({ length: count }, (_, n) => `${n}.txt`)
      for (const name of files)
        await writeFile(join(cwd, name), Buffer.alloc(size, `${name}${Math.random()}`))
      return runCli(['upload', '-q', '--server', app.url, ...files], { cwd, env })
    }
  }
  return { app, audiences, startJob }
}

it('a job uploads without a stored secret, and the server knows its repository', async () => {
  const { app, audiences, startJob } = await start()
  const upload = await startJob()
  const result = await upload(3)
  expect(result).toMatchObject({ code: 0 })
  expect(result.stdout.trim().split('\n')).toHaveLength(3)
  expect(new Set(audiences)).toEqual(new Set([app.url]))
  const callers = app.log.flatMap(line => line['caller'] ?? [])
  expect(new Set(callers)).toEqual(new Set(['token actions: acme/app']))
  expect(app.rawLog()).not.toMatch(/eyJ/)
})

it('a job outlives its tokens', async () => {
  const { audiences, startJob } = await start()
  const upload = await startJob(OURS, 2)
  for (let i = 0; i < 3; i++) expect(await upload(1)).toMatchObject({ code: 0 })
  expect(audiences.length).toBeGreaterThanOrEqual(3)
})

it('attack: a job of another owner asks for a token with our audience', async () => {
  const { app, startJob } = await start()
  const upload = await startJob({ ...OURS, repository: 'evil/app', repository_owner_id: '666' })
  const result = await upload(1)
  expect(result.code).toBe(5)
  // Only the lines that make GitHub hide the tokens have them: one for each token that is asked for.
  expect(result.stderr.replace(/^::add-mask::.*$/gm, '')).not.toMatch(/"1234"|eyJ/)
  expect(JSON.stringify(app.log)).toContain('repository_owner_id')
  expect(await app.files()).toEqual([])
})

it('each repository has a share of its own, and a file size', async () => {
  const { app, startJob } = await start()
  const upload = await startJob()
  const uploadOther = await startJob({ ...OURS, repository: 'acme/site' })
  const first = await upload(7)
  expect(first.code).toBe(3)
  expect(first.stdout.trim().split('\n').filter(Boolean)).toHaveLength(5)
  expect(first.stderr).toContain('5 files in 1d')
  expect(await uploadOther(5)).toMatchObject({ code: 0 })
  expect((await uploadOther(1, 1_100_000)).stderr).toContain('larger than 1 MB')
  expect(await app.files()).toHaveLength(10)
})
