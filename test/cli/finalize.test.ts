import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeEach, describe, expect, it } from 'vitest'
import { makeDirectory } from '../helpers/directory.ts'
import { formOf, post } from '../helpers/form.ts'
import { environmentIn, spawnServer } from '../helpers/spawn-server.ts'
import { startApp } from '../helpers/start-app.ts'
import { startStubBucket } from '../helpers/stub-bucket.ts'
import { runCli, runShell } from './run-cli.ts'

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

/** @returns the finalizationId */
async function leavePending({ url }: { url: string }, name: string): Promise<string> {
  const answer = await post(`${url}/upload`, { body: formOf({ [name]: name }) })
  expect(answer.status).toBe(424)
  return (answer as unknown as { finalizationId: string }).finalizationId
}

describe('without a server', () => {
  it('finishes the one that is named, then all the others, each once', async () => {
    await hookIs('broken')
    const server = await startHere()
    const ids = [await leavePending(server, 'a.txt'), await leavePending(server, 'b.txt')]
    ids.push(await leavePending(server, 'c.txt'))
    await server.server.stop()
    await hookIsNot('broken')
    await rm(join(cwd, 'hook'))

    const one = await finalize(ids[1]!)
    expect(one).toMatchObject({ code: 0, stderr: '' })
    expect(one.stdout).toMatch(
      new RegExp(`^finished  ${ids[1]}  http://127\\.0\\.0\\.1:\\d+/files/Default/\\S+b-\\S+\\.txt\n$`),
    )
    expect(await hookRuns()).toEqual([ids[1]])

    const { code, stdout } = await finalize()
    expect(code).toBe(0)
    expect(stdout.split('\n').map(line => line.split('  ')[1])).toEqual([ids[0], ids[2], undefined])
    expect(await hookRuns()).toEqual([ids[1], ids[0], ids[2]])
    expect(await finalize()).toMatchObject({ code: 0, stdout: '' })
    expect(await finalize(ids[0]!)).toMatchObject({ code: 0, stdout: expect.stringContaining('a-') })
    expect(await hookRuns()).toHaveLength(3)
  })

  it('says what still fails, without secrets and escape sequences, and goes on with the next', async () => {
    await hookIs('broken')
    const server = await startHere()
    const ids = [await leavePending(server, 'a.txt'), await leavePending(server, 'b.txt')]
    await server.server.stop()
    const script = `printf 'marked-secret \\033[2J\\233\\302\\233 no luck'; test "$UPLOAD_ID" = "$0"`
    await configure(['sh', '-c', script, ids[1]!])
    const { code, stdout, stderr } = await finalize()
    expect(code).toBe(1)
    expect(stdout).toMatch(new RegExp(`^finished  ${ids[1]}  `))
    expect(stderr).toMatch(
      new RegExp(
        `^failed    ${ids[0]}  .*hook "note" failed: exit code 1: \\[secret\\] .*no luck\\. Don.t upload again.*\n$`,
      ),
    )
    expect(stderr).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/)
  })

  it('finishes what a server was finishing when it was killed, and leaves the report of the rest to the next one', async () => {
    await hookIs('slow')
    const bucket = await startStubBucket()
    bucket.hold()
    await configure(hook(), { s3: { held: bucket.options } })
    const server = await spawnServer([], { directory: cwd })
    const url = await server.url
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
    await expect
      .poll(() => next.lines.filter(line => line.includes('interrupted')), { timeout: 10_000 })
      .toHaveLength(1)
    expect(next.lines.find(line => line.includes('interrupted'))).toContain('held.txt')
  })
})

describe('beside a running server', () => {
  it('finishes what waits, and the server knows of it', async () => {
    await hookIs('broken')
    const server = await startHere()
    const id = await leavePending(server, 'a.txt')
    await hookIsNot('broken')
    expect(await finalize(id)).toMatchObject({ code: 0 })
    const runs = await hookRuns()
    const answer = await post(`${server.url}/upload?finalizationId=${id}`)
    expect(answer).toMatchObject({ status: 200, result: [expect.stringContaining('/a-')] })
    expect(await hookRuns()).toEqual(runs)
  })

  it('waits while the server is finishing it', async () => {
    await hookIs('slow')
    const server = await spawnServer([], { directory: cwd })
    const uploading = post(`${await server.url}/upload`, { body: formOf({ 'a.txt': 'a' }) })
    await expect.poll(hookRuns, { timeout: 10_000 }).toHaveLength(1)
    const finishing = finalize()
    await new Promise(resolve => setTimeout(resolve, 2500))
    await hookIsNot('slow')
    expect(await finishing).toMatchObject({ code: 0, stdout: expect.stringMatching(/^finished /) })
    expect(await uploading).toMatchObject({ status: 200 })
    expect(await hookRuns()).toHaveLength(1)
  })
})

describe('an upload whose hook fails', () => {
  const finishing = /^Complete the upload without sending the files again: (.+)$/m

  it('through a server prints the command that finishes it', async () => {
    await hookIs('broken')
    const server = await startHere()
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
    const [, command = ''] = finishing.exec(stderr) ?? []
    const finish = command.replace('upload-server', 'upload_server')
    const finished = await runShell(finish.replace('KEY', 'marked-secret'), { cwd })
    expect(finished).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^finished {2}\S+ {2}http\S+\/a-/),
    })
    const unknown = await runShell(`upload_server finalize --server ${server.url} nope`, { cwd })
    expect(unknown).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^failed {4}nope {2}No pending upload/),
    })
  })
})
