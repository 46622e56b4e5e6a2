import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeEach, describe, expect, it } from 'vitest'
import { makeDirectory } from '../helpers/directory.ts'
import { formOf, post } from '../helpers/form.ts'
import { environmentIn, spawnServer } from '../helpers/spawn-server.ts'
import { startApp } from '../helpers/start-app.ts'
import { startStubBucket } from '../helpers/stub-bucket.ts'
import { runCli } from './run-cli.ts'

/** Writes a line at each run. Fails while the file `hook.broken` is there, waits while `hook.slow` is. */
const HOOK = 'echo "$UPLOAD_ID" >> "$0"; while [ -e "$0.slow" ]; do sleep 0.02; done; ! [ -e "$0.broken" ]'

let cwd: string
beforeEach(async () => {
  cwd = await makeDirectory()
  await configure(hook())
})

const configOf = (command: string[], more: object = {}) => ({
  server: { port: 0, key: 'marked-secret' },
  default: 'local/Default',
  providers: { local: { Default: { directory: 'files', serve: true } }, ...more },
  finalization: { hooks: [{ name: 'note', command }] },
})
const hook = () => ['sh', '-c', HOOK, join(cwd, 'hook')]
const configure = (command: string[], providers?: object) =>
  writeFile(join(cwd, 'upload-server.json'), JSON.stringify(configOf(command, providers)))

const finalize = (...args: string[]) => runCli(['finalize', ...args], { cwd })
const hookIs = (state: 'slow' | 'broken') => writeFile(join(cwd, `hook.${state}`), '')
const hookIsNot = (state: 'slow' | 'broken') => rm(join(cwd, `hook.${state}`))
const hookRuns = async () =>
  (await readFile(join(cwd, 'hook'), 'utf8').catch(() => '')).split('\n').filter(Boolean)

/** A server in this process, on the store that the command line uses. */
const startHere = () => startApp({ config: configOf(hook()), directory: cwd, env: environmentIn(cwd) })

/** @returns the finalizationIds */
async function leavePending({ url }: { url: string }, ...names: string[]): Promise<string[]> {
  await hookIs('broken')
  const ids: string[] = []
  for (const name of names) {
    const answer = await post(`${url}/upload`, { body: formOf({ [name]: name }) })
    expect(answer.status).toBe(424)
    ids.push((answer as unknown as { finalizationId: string }).finalizationId)
  }
  return ids
}

it('finishes the one that is named, then all the others, each once, which a running server knows', async () => {
  const server = await startHere()
  const [a = '', b = '', c = ''] = await leavePending(server, 'a.txt', 'b.txt', 'c.txt')
  await hookIsNot('broken')
  await rm(join(cwd, 'hook'))

  const one = await finalize(b)
  expect(one).toMatchObject({ code: 0, stderr: '' })
  expect(one.stdout).toMatch(new RegExp(`^finished  ${b}  ${server.url}/files/Default/\\S+b-\\S+\\.txt\n$`))
  expect(await hookRuns()).toEqual([b])
  const answer = await post(`${server.url}/upload?finalizationId=${b}`)
  expect(answer).toMatchObject({ status: 200, result: [expect.stringContaining('/b-')] })

  const { code, stdout } = await finalize()
  expect(code).toBe(0)
  expect(stdout.split('\n').map(line => line.split('  ')[1])).toEqual([a, c, undefined])
  expect(await finalize()).toMatchObject({ code: 0, stdout: '' })
  expect(await finalize(a)).toMatchObject({ code: 0, stdout: expect.stringContaining('a-') })
  expect(await hookRuns()).toEqual([b, a, c])
})

it('says what still fails, without secrets and escape sequences, and goes on with the next', async () => {
  const server = await startHere()
  const [first = '', second = ''] = await leavePending(server, 'a.txt', 'b.txt')
  await server.server.stop()
  const script = `printf 'marked-secret \\033[2J\\233\\302\\233 no luck'; test "$UPLOAD_ID" = "$0"`
  await configure(['sh', '-c', script, second])
  const { code, stdout, stderr } = await finalize()
  expect(code).toBe(1)
  expect(stdout).toMatch(new RegExp(`^finished  ${second}  `))
  expect(stderr).toMatch(
    new RegExp(
      `^failed    ${first}  .*hook "note" failed: exit code 1: \\[secret\\] .*no luck\\. Don.t upload again.*\n$`,
    ),
  )
  expect(stderr).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/)
})

describe('a hook that is running', () => {
  const start = async () => {
    await hookIs('slow')
    const server = await spawnServer([], { directory: cwd })
    return { server, url: await server.url }
  }

  it('is finished when its server was killed, and the report of the rest is left to the next one', async () => {
    const bucket = await startStubBucket()
    bucket.hold()
    await configure(hook(), { s3: { held: bucket.options } })
    const { server, url } = await start()
    const send = (to: string, name: string) =>
      post(`${url}/upload?destination=${to}`, { body: formOf({ [name]: name }) }).catch(() => {})
    const cut = [send('local/Default', 'a.txt'), send('s3/held', 'held.txt')]
    await expect.poll(hookRuns, { timeout: 10_000 }).toHaveLength(1)
    await expect.poll(() => bucket.puts).toHaveLength(1)
    server.process.kill('SIGKILL')
    await server.exit
    await Promise.all(cut)
    await hookIsNot('slow')
    const [id = ''] = await hookRuns()
    expect(await finalize()).toMatchObject({ code: 0, stdout: expect.stringContaining(`finished  ${id}`) })
    expect(await hookRuns()).toEqual([id, id])
    const next = await spawnServer([], { directory: cwd })
    const told = () => next.lines.filter(line => line.includes('interrupted'))
    await expect.poll(told, { timeout: 10_000 }).toEqual([expect.stringContaining('held.txt')])
  })

  it('is waited for while its server lives', async () => {
    const { url } = await start()
    const uploading = post(`${url}/upload`, { body: formOf({ 'a.txt': 'a' }) })
    await expect.poll(hookRuns, { timeout: 10_000 }).toHaveLength(1)
    const [id = ''] = await hookRuns()
    const finishing = finalize(id)
    for (let turn = 0; turn < 50; turn++) await hookRuns() // The command meanwhile asks for the upload.
    await hookIsNot('slow')
    expect(await finishing).toMatchObject({ code: 0, stdout: expect.stringMatching(/^finished /) })
    expect(await uploading).toMatchObject({ status: 200 })
    expect(await hookRuns()).toHaveLength(1)
  })
})

it('an upload through a server whose hook fails prints the command that finishes it', async () => {
  const server = await startHere()
  await hookIs('broken')
  await writeFile(join(cwd, 'a.txt'), 'a')
  const args = ['upload', '--server', server.url, '--key', 'marked-secret', 'a.txt', 'absent.txt']
  const { code, stdout, stderr } = await runCli(args, { cwd })
  expect({ code, stdout }).toEqual({ code: 3, stdout: '' })
  expect(stderr).toContain(
    'the file is stored, but its post-upload steps are pending: All files were stored, but hook "note" failed: exit code 1',
  )
  expect(stderr).toMatch(/^1 of 2 files failed\. Try again: upload-server upload .* absent\.txt$/m)
  expect(stderr).not.toContain('marked-secret')
  await hookIsNot('broken')
  const [, line = ''] =
    /^Complete the upload without sending the files again: upload-server (.+)$/m.exec(stderr) ?? []
  const finished = await runCli(line.replace('KEY', 'marked-secret').split(' '), { cwd })
  expect(finished).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^finished {2}\S+ {2}http\S+\/a-/),
  })
  const unknown = await finalize('--server', server.url, 'nope')
  expect(unknown).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/^failed {4}nope {2}No pending upload/),
  })
})
