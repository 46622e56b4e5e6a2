import { mkdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { readImages } from '../../src/client/reports/read-results.ts'
import { makeDirectory } from '../helpers/directory.ts'
import { listen } from '../helpers/listen.ts'
import { makePicture } from '../helpers/picture.ts'
import { ACTIONS_JOB, pageOf, startCommentForge, TOKEN } from '../servers/comment-forge.ts'
import { makeJob, storedHere } from './comment-job.ts'
import { runBuilt, runCli } from './run-cli.ts'

const NO_SHARP = { NODE_OPTIONS: `--import=${new URL('../fixtures/without.mjs', import.meta.url)}?sharp` }

/** A job whose images of now are in `shots`, those of earlier in `main`. `upload` writes a comment. */
async function prepare() {
  const job = await makeJob()
  const { cwd, forge, write } = job
  await write('upload-server.json', storedHere())
  const menu = makePicture(9, [90, 0, 0])
  const images = { 'shots/login': 10, 'main/login': 200, 'shots/deep/menu': menu, 'main/deep/menu': menu }
  for (const [name, image] of Object.entries({ ...images, 'main/old': 150, 'shots/new': 250 }))
    await write(`${name}.png`, image)
  const envOf = (more: Record<string, string> = {}) => ({
    ...{ ...ACTIONS_JOB, GITHUB_API_URL: forge.api, GITHUB_TOKEN: TOKEN, ...more },
  })
  const upload = (args: string, env?: Record<string, string>, run = runCli) =>
    run(['upload', '--comment', ...args.split(' ')], { cwd, env: envOf(env) })
  return { ...job, upload }
}

async function serveAll(handle: Parameters<typeof listen>[0]): Promise<string> {
  const { url, close } = await listen(handle)
  onTestFinished(close)
  return url
}

const result = (name: string, sha256: string) => ({
  ...{ name, sha256, url: `https://img.example.com/${sha256}.png`, contentType: 'image/png' },
  ...{ size: 9, width: 30, height: 20 },
})

describe('upload --comment', () => {
  it('writes one comment, brings it up to date, and shows how pictures were before', async () => {
    const { forge, upload, body } = await prepare()
    const first = await upload('shots')
    expect(first).toMatchObject({ code: 0, stderr: expect.stringContaining('Created a comment.') })
    const links = first.stdout.trim().split('\n')
    expect(links).toHaveLength(3)
    expect(body()).toContain('### Pictures\n\n**3 of 3 stored')
    for (const link of links) expect(body()).toContain(`src="${link}"`)

    const second = await upload('--compare main --comment-title Screens shots', { GITHUB_RUN_NUMBER: '2' })
    expect(second).toMatchObject({ code: 0, stdout: first.stdout })
    expect(forge.comments).toHaveLength(1)
    expect(body()).toContain('### Screens\n\n**1 changed · 1 new · 1 gone · 1 the same**')
    expect(body()).toMatch(
      /<code>login\.png<\/code>: 100 % of the pixels changed\n\n<table>\n.*\n<tr><td><a .*before-login-.*<td><a .*\/login-.*<td><a .*difference-login-.*<\/tr>/,
    )
    expect(body()).toContain('- gone: <code>old.png</code>')
    expect(body()).not.toContain('menu')
  })

  it('shows nothing where only the bytes are different, and makes one line of an earlier comment', async () => {
    const { cwd, forge, write, upload } = await prepare()
    await rm(join(cwd, 'main/old.png'))
    for (const name of ['login.png', 'new.png'])
      for (const folder of ['main', 'shots']) await write(`${folder}/${name}`, makePicture())
    const first = await upload('--compare main shots')
    expect(first.stderr).toContain('Compared with main: 3 the same.')
    expect(first.stderr).toContain('No image has changed, so no comment was created.')
    expect(forge.comments).toEqual([])
    await upload('shots')
    const again = await upload('--compare main shots', { GITHUB_RUN_NUMBER: '2' })
    expect(again.stderr).toContain('Updated the comment.')
    expect(forge.comments.map(({ body }) => body.split('\n').slice(1).join())).toEqual([
      '**Pictures**: 3 the same,',
    ])
  })

  it.each([
    ['', 0],
    ['--fail-on changed ', 1],
    ['--fail-on changed --threshold 99.9 ', 1],
    ['--fail-on changed --threshold 100 ', 0],
    ['--fail-on gone,new --threshold 100 --soft-fail ', 1],
    ['--fail-on changed --fail-on new --threshold 100 ', 1],
    ['--fail-on other ', 2],
  ])('ends with %sas code %i', async (more, code) => {
    const { forge, upload } = await prepare()
    const ended = await upload(`--compare main ${more}shots`)
    expect(ended.code, ended.stderr).toBe(code)
    expect(forge.comments).toHaveLength(code === 2 ? 0 : 1)
    if (code === 1) expect(ended.stderr).toMatch(/^--fail-on: (?:1 changed|1 new · 1 gone|1 new)\.$/m)
  })

  it('without sharp, compares the bytes, and says so', async () => {
    const { upload, body } = await prepare()
    const { stderr } = await upload('--compare main shots', NO_SHARP, runBuilt)
    expect(stderr).toMatch(
      /needs the package "sharp".* The bytes of images are compared, not their pixels\.$/m,
    )
    expect(body()).toContain('**1 changed · 1 new · 1 gone · 1 the same**')
    expect(body()).not.toContain('Difference')
  })

  it('keeps what was before from being written over what is now', async () => {
    const { write, upload, body } = await prepare()
    await write('upload-server.json', storedHere({ keyTemplate: '{filename}{extname}' }))
    await upload('--compare main shots')
    for (const name of ['before-login', 'login'])
      expect(body()).toContain(`https://img.example.com/${name}.png`)
  })

  it.each([
    ['is missing', 'nowhere', 'the file does not exist'],
    ['is empty', 'empty', 'the folder contains no files'],
  ])('everything is new where the folder of earlier images %s', async (_, folder, reason) => {
    const { cwd, upload, body } = await prepare()
    await mkdir(join(cwd, 'empty'))
    const { code, stderr } = await upload(`--compare ${folder} shots`)
    expect(code, stderr).toBe(0)
    expect(stderr).toContain(`--compare ${folder}: ${reason}. All images count as new.`)
    expect(body()).toContain('**3 new**')
  })

  it('says what failed in the comment, and when the comment itself failed', async () => {
    const { upload, body } = await prepare()
    expect((await upload('shots/new.png @all.png')).code).toBe(3)
    expect(body()).toContain('- ❌ <code>&#x40;all.png</code>: ')
    const failed = await upload('shots/new.png', { GITHUB_TOKEN: 'wrong-token' })
    expect(failed).toMatchObject({ code: 1, stdout: expect.stringContaining('/new-') })
    expect(failed.stderr).toMatch(/Could not write the comment: .* 401 .*pull-requests: write/)
    expect(failed.stderr).not.toContain('wrong-token')
  })

  const NO_JOB = { GITHUB_ACTIONS: '' }
  it.each<[string, string, Record<string, string>, number, RegExp]>([
    ['no pull request', '', { GITHUB_REF: 'refs/heads/main' }, 0, /does not belong to a pull request/],
    ['an empty variable for the pull request', '--pr= ', NO_JOB, 0, /does not/],
    ['no CI host', '', NO_JOB, 2, /Specify its URL with --pr/],
    ['no token', '', { GITHUB_TOKEN: '' }, 2, /Could not write a comment on 127.*GITHUB_TOKEN/],
    ['what is no page', '--pr me/app#7 ', {}, 2, /is not the URL of a pull request/],
    ['another forge', '--pr http://127.0.0.1:1/me/app/pull/7 ', {}, 2, /without an API token/],
    ['no baseline', '--update-baseline always ', {}, 2, /--update-baseline requires --baseline/],
    ['no earlier images', '--threshold 1 ', {}, 2, /--threshold requires --compare or --baseline/],
    ['nothing to fail on', '--fail-on new ', {}, 2, /--fail-on requires --compare or --baseline/],
  ])('with %s', async (_, args, env, code, said) => {
    const { forge, upload } = await prepare()
    const ended = await upload(`${args}shots/new.png`, env)
    expect(ended.code, ended.stderr).toBe(code)
    expect(ended.stderr).toMatch(said)
    expect(ended.stdout === '').toBe(code !== 0)
    expect(forge.asked).toEqual([])
  })
})

describe('attack: the token of a job goes to nobody but its own forge', () => {
  const onMain = { GITHUB_REF: 'refs/heads/main' }
  it.each<[string, Record<string, string>]>([
    ['of a job about no pull request', onMain],
    ['of a job about another one', {}],
    ['where no CI host is', { GITHUB_ACTIONS: '', GITLAB_TOKEN: TOKEN, GITEA_TOKEN: TOKEN }],
    ['of a job whose own token is empty', { ...onMain, GITHUB_TOKEN: '', GITLAB_TOKEN: TOKEN }],
  ])('%s', async (_, env) => {
    const { forge, upload } = await prepare()
    for (const kind of ['github', 'gitea', 'gitlab'] as const) {
      const thief = await startCommentForge(kind)
      const { code, stderr } = await upload(`--pr ${pageOf(thief, kind)} shots/new.png`, env)
      expect(code).toBe(2)
      expect(stderr).toMatch(
        /Could not write a comment on 127\.0\.0\.1:\d+ without an API token\. Set UPLOAD_COMMENT_TOKEN in the job\./,
      )
      expect([...thief.asked, ...forge.asked]).toEqual([])
      await thief.close()
    }
  })

  it('over http', async () => {
    const args = ['comment', '--pr', 'http://github.example.com/me/app/pull/7', '--comment-token', TOKEN]
    const { code, stderr } = await runCli(args, { cwd: await makeDirectory(), input: '[]' })
    expect(code).toBe(1)
    expect(stderr).toContain('Refused to send the token to github.example.com over unencrypted http.')
  })

  it('and to that one also where the job is about no pull request', async () => {
    const { forge, upload } = await prepare()
    expect(await upload(`--pr ${pageOf(forge, 'github')} shots/new.png`, onMain)).toMatchObject({ code: 0 })
    expect(forge.comments).toHaveLength(1)
  })
})

it.each([
  ['may not write', {}],
  ['is not there', { GITHUB_TOKEN: '' }],
])("a fork's pull request, whose token %s, leaves a good job green", async (_, env) => {
  const { cwd, forge, write, upload } = await prepare()
  const repo = (name: string) => ({ repo: { full_name: name } })
  const event = { pull_request: { head: repo('somebody/app'), base: repo('me/app') } }
  await write('event.json', JSON.stringify(event))
  forge.before = ({ method }) =>
    void (method === 'POST' && forge.instead.push(() => ({ status: 403, body: { message: 'Forbidden' } })))
  const given = { GITHUB_EVENT_PATH: join(cwd, 'event.json'), ...env }
  const { code, stderr, stdout } = await upload('shots/new.png', given)
  expect(code).toBe(0)
  expect(stderr).toContain('Warning: no comment was written. The pull request comes from a fork')
  expect(stdout).toContain('/new-')
})

describe('comment', () => {
  it('the built program takes what upload has printed, from a file or standard input, and pictures of earlier', async () => {
    const { cwd, forge, write, body } = await makeJob()
    const same = result('shots/b/same.png', 'same')
    const after = JSON.stringify([result('shots/a.png', 'a2'), same, { name: 'c.png', error: 'no' }])
    const before = [result('main/a.png', 'a1'), result('main/b/same.png', 'same'), result('main/c.png', 'c')]
    await write('after.json', after)
    await write('before.ndjson', before.map(one => JSON.stringify(one)).join('\n'))
    const args = ['comment', '--compare', 'before.ndjson', '--pr', pageOf(forge, 'github')]
    const env = { UPLOAD_COMMENT_TOKEN: TOKEN }
    expect(await runBuilt([...args, 'after.json'], { cwd, env })).toMatchObject({ code: 0, stdout: '' })
    expect(body()).toContain('**1 changed · 1 failed · 1 the same**')
    expect(body()).toMatch(/\/a1\.png" width="30" alt="a\.png before"><\/a><\/td>.*\/a2\.png/)
    const said = await runBuilt(args, { cwd, env, input: after })
    expect(said.stderr).toContain('The comment is already up to date.')
    const shown = await runCli(['comment', '--dry-run', '--compare', 'before.ndjson', 'after.json'], { cwd })
    expect(body().endsWith(shown.stdout)).toBe(true)
  })

  it('says which results are missing', async () => {
    const { stderr } = await runCli(['comment', '--dry-run', 'absent.json'], { cwd: await makeDirectory() })
    expect(stderr).toBe('Could not read absent.json: no such file or folder.\n')
  })

  it('shows the shards of one run as one comment', async () => {
    const { cwd, write } = await makeJob()
    const list = (...all: string[]) =>
      JSON.stringify(all.map(sha256 => result(`shots/${sha256[0]}.png`, sha256)))
    await write('1.json', list('a2', 'b'))
    await write('2.json', list('c'))
    await write('main.json', list('a', 'b', 'c'))
    const comment = (...lists: string[]) =>
      runCli(['comment', '--dry-run', '--compare', 'main.json', ...lists], { cwd, input: '[]' })
    expect((await comment('1.json')).stdout).toContain('1 changed · 1 gone · 1 the same')
    expect((await comment('1.json', '2.json')).stdout).toContain('1 changed · 2 the same')
    const twice = await comment('-', '-')
    expect(twice).toMatchObject({ code: 2, stderr: expect.stringContaining('can be given only once') })
  })

  it.each([
    ['nothing', ''],
    ['what is no JSON', '{'],
    ['another JSON', '{"a":1}'],
    ['links that are none', JSON.stringify([{ name: 'a', url: 'javascript:alert(1)' }])],
    ['attack: links of several lines', JSON.stringify([{ name: 'a', url: 'https://x/a\n\n/merge' }])],
    ['attack: links with HTML behind them', JSON.stringify([{ name: 'a', url: 'https://x/a <h1>b' }])],
    ['attack: links that turn what follows', JSON.stringify([{ name: 'a', url: 'https://x/\u202eb' }])],
    ['attack: links that are coloured', JSON.stringify([{ name: 'a', url: 'https://x/\u001b[31mb' }])],
  ])('refuses %s', async (_, input) => {
    const { code, stderr } = await runCli(['comment', '--dry-run'], { cwd: await makeDirectory(), input })
    expect(code).toBe(1)
    expect(stderr).toContain(
      'Could not read standard input: it is not output of "upload-server upload --format json".',
    )
  })

  it('attack: names and failures of a pull request stay text, however many there are', async () => {
    const { cwd, write } = await makeJob()
    const name =
      '<img src=x onerror=alert(1)> | `x` @all #1 ]( http://evil/ --> \n## h www.evil.example o/r#1 GH-1 !1 h.png'
    const results = Array.from({ length: 3000 }, (_, index) => result(`${index}${name}`, `s${index}`))
    const input = JSON.stringify([{ name, error: name }, ...results])
    await write('before.json', JSON.stringify(results.map(one => ({ ...one, sha256: 'old' }))))
    for (const more of [[], ['--compare', 'before.json']]) {
      const { code, stdout } = await runCli(['comment', '--dry-run', ...more], { cwd, input })
      expect(code).toBe(0)
      expect(stdout.length).toBeLessThan(65_000)
      expect(/do not fit/.test(stdout)).toBe(true)
      const markup = stdout.replace(/<code>[^<]*<\/code>| alt="[^"]*"/g, '')
      expect(/<img src=x|@all|\n## h|`x|#1|GH-1|!1|(?:evil\.|h\.)/.exec(markup)).toBeNull()
      expect(/<img src=x|@all|`x|#1|!1|www\.|:\/\/evil/.exec(stdout)).toBeNull()
    }
  })
})

it.each<[string, () => object[], string]>([
  [
    'a name of a million characters',
    () => [{ name: '@'.repeat(1e6), error: '@'.repeat(1e6) }],
    '- ❌ and 1 m',
  ],
  [
    '150,000 results',
    () => Array.from({ length: 150_000 }, (_, index) => result(`${index}.png`, `s${index}`)),
    '**150000 of 150000 stored',
  ],
])('attack: a comment with %s', async (_, results, said) => {
  const { cwd, write } = await makeJob()
  await write('shots.json', JSON.stringify(results()))
  const { code, stdout, stderr } = await runCli(['comment', '--dry-run', 'shots.json'], { cwd })
  expect([code, stderr]).toEqual([0, ''])
  expect(stdout).toContain(said)
  const { images } = await readImages('shots.json', { cwd, stdin: process.stdin })
  const one = images[0]?.result
  expect(Math.max(one?.name.length ?? 0, one?.error?.length ?? 0)).toBeLessThan(10_000)
})

describe('comment --compare', () => {
  /** Compares an image of a server with an earlier one. @param server as the command line names it */
  async function compare(url: string, server = url) {
    const { cwd, write } = await makeJob()
    const list = (name: string) => JSON.stringify([{ name: 'a.png', url: `${url}/${name}`, sha256: name }])
    await write('old.json', list('old'))
    const args = ['comment', '--dry-run', '--compare', 'old.json', '--server', server]
    return runCli(args, { cwd, input: list('new') })
  }

  it('attack: a host of an image breaks off its response, so that no comment is written', async () => {
    const url = await serveAll((_, res) => {
      res.writeHead(200, { 'Content-Length': '1000' }).write('x', () => res.destroy())
    })
    const { code, stdout, stderr } = await compare(url)
    expect([code, stdout]).toEqual([0, expect.stringContaining('1 changed')])
    expect(stderr).toContain('could not be read')
  })

  it('fetches images of the server with the user name and password in its URL', async () => {
    const url = await serveAll((req, res) => {
      const isKnown = req.headers.authorization === `Basic ${btoa('me:a-pass-word')}`
      res.writeHead(isKnown ? 200 : 401).end(makePicture(9, [0, 0, 0]))
    })
    const behind = url.replace('//', '//me:a-pass-word@')
    expect((await compare(url, behind)).stdout).toContain('1 the same')
    expect((await compare(url)).stderr).toContain('returned status 401')
  })
})

describe('upload --report', () => {
  /** Two wide images that differ, so that there is something to make smaller. */
  async function prepareWide() {
    const job = await prepare()
    const sharp = (await import('sharp')).default
    for (const [folder, background] of Object.entries({ main: 'navy', shots: 'teal' })) {
      const image = sharp({ create: { width: 1600, height: 900, channels: 3, background } })
      await job.write(`${folder}/wide.png`, await image.png().toBuffer())
    }
    return job
  }

  it('writes a page with all images and uploads it, with smaller copies for the comment', async () => {
    const { cwd, upload, body } = await prepareWide()
    const summary = join(cwd, 'summary.md')
    const { code, stderr } = await upload('--compare main --report out/report.html shots --github-summary', {
      ...{ GITHUB_SHA: 'ab'.repeat(20), GITHUB_SERVER_URL: 'https://ci.example.com', GITHUB_RUN_ID: '77' },
      GITHUB_STEP_SUMMARY: summary,
    })
    expect({ code, stderr }).toMatchObject({ code: 0 })
    const page = await readFile(join(cwd, 'out/report.html'), 'utf8')
    expect(page.match(/<article data-state="\w+"/g)).toEqual(
      ['changed', 'changed', 'new', 'gone', 'same'].map(state => `<article data-state="${state}"`),
    )
    const [url = ''] = /(?<=^Report: ).*/m.exec(stderr) ?? []
    expect(url).toMatch(/^https:\/\/img\.example\.com\/.*\/report-\w+\.html$/)
    expect(await readFile(join(cwd, url.replace('https://img.example.com', 'stored')), 'utf8')).toBe(page)
    expect(body()).toContain(
      `Commit ${'ab'.repeat(20)} · [run](https://ci.example.com/me/app/actions/runs/77)`,
    )
    expect(body()).toContain(`[Report with all images](${url})`)
    expect(body()).toMatch(
      /<a href="[^"]+\/before-wide-\w+\.png"><img src="[^"]+\/small-before-wide-\w+\.webp" width="390" alt="wide\.png before">/,
    )
    expect(body().match(/src="[^"]+\/small-(?:before|after|difference)-wide-\w+\.webp"/g)).toHaveLength(3)
    expect(body()).toContain(await readFile(summary, 'utf8'))
  })

  it('earlier images that can’t be fetched cost no other image its smaller copies', async () => {
    const { cwd, write, upload, body } = await prepareWide()
    const wide = await readFile(join(cwd, 'main/wide.png'))
    const lost = ['a', 'b', 'c', 'd', 'e']
    for (const name of lost) await write(`shots/${name}.png`, 10)
    const url = await serveAll((req, res) => {
      const toImage = (name: string) => ({ name: `${name}.png`, url: `${url}/${name}`, sha256: name })
      if (req.url === '/list.json') res.end(JSON.stringify([...lost, 'wide'].map(toImage)))
      else res.writeHead(req.url === '/wide' ? 200 : 500).end(wide)
    })
    const { stderr } = await upload(`--compare ${url}/list.json shots`)
    expect(stderr).toContain('5 images count as changed, because they could not be fetched')
    expect(body().match(/src="[^"]+\/small-\w+-wide-\w+\.webp"/g)).toHaveLength(3)
  })

  it('shows neither the password nor the signature of a URL that it was compared with', async () => {
    const { cwd, upload, body } = await prepare()
    const url = await serveAll((_, res) => res.end('[]'))
    const compared = `${url.replace('//', '//me:s3cr3t@')}/list.json?signature=s3cr3t`
    const { stderr } = await upload(`--compare ${compared} --report report.html shots`)
    const page = await readFile(join(cwd, 'report.html'), 'utf8')
    expect(page).toContain(`compared with ${url}/list.json`)
    expect(page + stderr + body()).not.toContain('s3cr3t')
  })

  it('without a comparison, has all images; without sharp, the comment shows them in full size', async () => {
    const { cwd, upload, body } = await prepareWide()
    expect(await upload('--report r.html shots', NO_SHARP, runBuilt)).toMatchObject({ code: 0 })
    expect(await readFile(join(cwd, 'r.html'), 'utf8')).toContain('<p class="totals">4 images</p>')
    const compared = await upload('--report r.html shots --compare main', NO_SHARP, runBuilt)
    expect(compared.code).toBe(0)
    expect(body()).toMatch(/src="[^"]+\/wide-\w+\.png" width="390" alt="wide\.png after"/)
  })

  it.each(['r.html', '.', '..'])('says that %s is a folder, and fails', async folder => {
    const { cwd, upload } = await prepare()
    await mkdir(join(cwd, 'r.html'))
    const { code, stderr } = await upload(`--report ${folder} shots`)
    expect(stderr).toContain(`\nCould not write ${folder} for --report: it is a directory.\n`)
    expect(code).toBe(1)
  })
})
