import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { runBuilt, runCli } from '../../cli/run-cli.ts'
import { makeDirectory } from '../../helpers/directory.ts'
import { hasAll, needs, needsAll } from '../../helpers/needs.ts'
import { makePicture } from '../../helpers/picture.ts'
import { runBuiltOnTerminal } from '../../helpers/pty.ts'
import { spawnServer } from '../../helpers/spawn-server.ts'
import { OPENSSH_NEEDS, type OpenSsh, startOpenSsh } from '../../servers/openssh.ts'
import { startWebFolder } from '../../servers/web-folder.ts'
import { loginOf } from '../providers/sftp/open-sftp.ts'

describe('the host key of an SFTP server that nobody has pinned', () => {
  let server: OpenSsh
  let web: Awaited<ReturnType<typeof startWebFolder>>

  beforeAll(async () => {
    if (!hasAll(OPENSSH_NEEDS)) return
    server = await startOpenSsh()
    web = await startWebFolder(server.directory)
  })
  beforeEach(context => needsAll(context, OPENSSH_NEEDS))
  afterAll(async () => {
    web?.close()
    await server?.close()
  })

  /** A folder with a configuration and a picture, which is also the home of the user. */
  async function prepare() {
    const cwd = await makeDirectory()
    const { hostFingerprint: _, ...login } = loginOf(server)
    const options = { ...login, host: '127.0.0.1', urlPrefix: web.url }
    await writeFile(
      join(cwd, 'upload-server.json'),
      JSON.stringify({ providers: { sftp: { Default: options } } }),
    )
    await writeFile(join(cwd, 'a.png'), await makePicture())
    return { cwd, options, kept: join(cwd, 'upload-server', 'known_hosts') }
  }

  const SHOWN =
    /presented the host key ssh-ed25519 SHA256:[\w+/]{43}, which was unknown\. It is trusted from now on/

  it('is shown and kept by upload, check, init and serve alike, and known to the next of them', async () => {
    for (const args of [
      ['upload', 'a.png'],
      ['check'],
      ['init', '--yes', '-c', 'new.json', '--provider', 'sftp'],
    ]) {
      const { cwd, options, kept } = await prepare()
      const set = Object.entries(options).flatMap(([name, value]) => ['--set', `${name}=${value}`])
      const command = args[0] === 'init' ? [...args, ...set] : args
      const first = await runCli(command, { cwd })
      expect(first, command.join(' ')).toMatchObject({ code: 0 })
      expect(first.stdout + first.stderr).toMatch(SHOWN)
      expect(await readFile(kept, 'utf8')).toMatch(/^\[127\.0\.0\.1\]:\d+ ssh-ed25519 \S+\n$/)
      const again = await runCli(['upload', '--quiet', 'a.png'], { cwd })
      expect(again).toMatchObject({ code: 0, stderr: '' })
    }
    const { cwd, kept } = await prepare()
    const running = await spawnServer(['--port', '0'], { directory: cwd })
    const form = new FormData()
    form.append('file', new Blob([await makePicture()]), 'b.png')
    const answer = await fetch(`${await running.url}/upload`, { method: 'POST', body: form })
    expect(answer.status).toBe(200)
    expect(running.lines.join('\n')).toMatch(SHOWN)
    expect((await runCli(['upload', kept], { cwd })).stderr).toContain('may not be uploaded')
  })

  it('is not asked for when OpenSSH of the user knows it', async () => {
    const { cwd } = await prepare()
    await runCli(['upload', '--quiet', 'a.png'], { cwd })
    const known = await readFile(join(cwd, 'upload-server', 'known_hosts'), 'utf8')
    const other = await prepare()
    await mkdir(join(other.cwd, '.ssh'))
    await writeFile(join(other.cwd, '.ssh', 'known_hosts'), known)
    // Where the home is, is the process's.
    expect(await runBuilt(['upload', '--quiet', 'a.png'], { cwd: other.cwd })).toMatchObject({
      code: 0,
      stderr: '',
    })
  })

  it('is shown by init, which asks whether to trust it', async context => {
    needs(context, 'python3', 'python3')
    const { cwd, options, kept } = await prepare()
    const set = Object.entries(options).flatMap(([name, value]) => ['--set', `${name}=${value}`])
    const init = 'init -c new.json --provider sftp --set password=p --set directory='.split(' ')
    const steps: [string, string][] = [
      ['Change an option?', '\r'],
      ['Who uploads', '\r'],
      ['port: Port', '\r'],
      ['Trust this host key?', 'n'],
      ['Change an option?', '\r'],
      ['Trust this host key?', 'y'],
      ['Editor settings', ''],
    ]
    const { exitCode, stdout } = await runBuiltOnTerminal([...init, ...set], steps, cwd)
    expect({ exitCode, stdout }).toMatchObject({ exitCode: 0 })
    expect(stdout).toContain(server.fingerprint)
    expect(stdout).toContain('The host key is not trusted. Nothing was sent')
    expect(await readFile(kept, 'utf8')).toMatch(/^\S+ ssh-ed25519 \S+\n$/)
  })

  it('is refused in words when it has changed, until its line is removed', async () => {
    const { cwd, kept } = await prepare()
    await runCli(['upload', '--quiet', 'a.png'], { cwd })
    await server.restart({ withNewHostKey: true })
    await writeFile(join(cwd, 'a.png'), 'other bytes')
    const { code, stdout, stderr } = await runCli(['upload', '--quiet', 'a.png'], { cwd })
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr).toContain(
      `presented the host key ssh-ed25519 ${server.fingerprint}, but line 1 of "known_hosts" in the data folder has a different one`,
    )
    expect(stderr).toContain('Nothing was sent')
    await writeFile(kept, '')
    expect((await runCli(['upload', '--quiet', 'a.png'], { cwd })).stderr).toMatch(SHOWN)
  })
})
