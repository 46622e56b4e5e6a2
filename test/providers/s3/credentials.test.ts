import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { objectOf } from '../../helpers/provider-contract.ts'
import { type Recorder, startRecorder } from '../../helpers/recorder.ts'
import { openLoopbackS3 } from '../../helpers/s3-target.ts'

const never = () => new AbortController().signal

/** For the rest of the test; undefined takes a variable away. */
function setEnvironment(variables: Record<string, string | undefined>): void {
  for (const [name, value] of Object.entries(variables)) {
    const before = process.env[name]
    assign(name, value)
    onTestFinished(() => assign(name, before))
  }
}

function assign(name: string, value: string | undefined): void {
  if (value === undefined) delete process.env[name]
  else process.env[name] = value
}

/** A bucket whose keys a program tells that stands in `~/.aws/config`; it notes each call in `calls`. */
async function openWithProgram(lifeMs: number) {
  const home = await mkdtemp(join(tmpdir(), 's3-credentials-'))
  onTestFinished(() => rm(home, { recursive: true }))
  const [program, calls] = [join(home, 'program'), join(home, 'calls')]
  const keys = {
    Version: 1,
    AccessKeyId: 'TEMPORARY',
    SecretAccessKey: 'secret',
    SessionToken: 'the token',
    Expiration: new Date(Date.now() + lifeMs).toISOString(),
  }
  await writeFile(program, `echo call >> '${calls}'\necho '${JSON.stringify(keys)}'\n`)
  await writeFile(join(home, 'config'), `[default]\ncredential_process = sh "${program}"\n`)
  setEnvironment({
    AWS_PROFILE: undefined,
    AWS_ACCESS_KEY_ID: undefined,
    AWS_SECRET_ACCESS_KEY: undefined,
    AWS_CONFIG_FILE: join(home, 'config'),
    AWS_SHARED_CREDENTIALS_FILE: join(home, 'none'),
  })
  const recorder = await startRecorder(() => ({ status: 200, headers: { etag: '"x"' } }))
  const target = openLoopbackS3({
    endpoint: `http://127.0.0.1:${recorder.port}`,
    bucket: 'pics',
    urlPrefix: 'https://img.example.com',
  })
  onTestFinished(async () => {
    await target.close?.()
    recorder.close()
  })
  return { target, recorder, countCalls: async () => (await readFile(calls, 'utf8')).split('\n').length - 1 }
}

const signedBy = ({ requests }: Recorder) =>
  requests.map(({ headers }) => [
    /Credential=(\w+)/.exec(headers['authorization'] ?? '')?.[1],
    headers['x-amz-security-token'],
  ])

it('keeps temporary credentials as long as they are good', async () => {
  const { target, recorder, countCalls } = await openWithProgram(3600_000)
  await Promise.all([1, 2, 3].map(i => target.put(objectOf(`${i}.png`, Buffer.of(i)), never())))
  await target.put(objectOf('4.png', Buffer.of(4)), never())
  expect(signedBy(recorder)).toEqual(Array(4).fill(['TEMPORARY', 'the token']))
  expect(await countCalls()).toBe(1)
})

it('fetches others before temporary credentials end, and uploads meanwhile', async () => {
  const { target, recorder, countCalls } = await openWithProgram(60_000)
  await target.put(objectOf('1.png', Buffer.of(1)), never())
  await target.put(objectOf('2.png', Buffer.of(2)), never())
  await expect.poll(countCalls).toBeGreaterThan(1)
  expect(recorder.requests).toHaveLength(2)
})
