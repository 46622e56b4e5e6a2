import { copyFile, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer, type RequestListener } from 'node:http'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { JOBS, needsDesk, prepareDesk, scriptsOf } from '../helpers/desk.ts'
import { DOCUMENTS } from '../helpers/documents.ts'
import { download } from '../helpers/form.ts'
import { makePicture } from '../helpers/picture.ts'

/** Plain commands of the program, each to be judged by itself. */
const LIST = /^(?:upload-server .*[^\\]\n)+$/

/** Every script of the documents that sends files to a running server, as the shell gets it, with a document that has it. */
const RECIPES = new Map(
  DOCUMENTS.flatMap(({ file, blocks }) =>
    blocks.flatMap(({ kind, code }) => {
      const scripts = JOBS.includes(kind) ? scriptsOf(code) : kind === 'sh' ? [code] : []
      const sends = /^.*(?:curl|upload-server upload).*(?:36677|https:|UPLOAD_SERVER_URL|\\$)/m
      return scripts
        .flatMap(script => (LIST.test(script) ? script.split(/(?<=\n)/) : [script]))
        .filter(script => sends.test(script))
        .map(script => [script, file] as const)
    }),
  ),
)
/**
 * What is tried at every kind of server: the scripts, each with a shell's logic of its own, and of plain commands one, since
 * they differ in options alone. All of them are tried where no server is.
 */
const AT_EVERY_SERVER = [...RECIPES].filter(
  ([script], _, all) => !LIST.test(script) || script === all.find(([one]) => LIST.test(one))?.[0],
)
const GITHUB = [...RECIPES.keys()].find(script => script.includes('GITHUB_STEP_SUMMARY')) ?? ''

/** Who waits for a server that never comes waits in vain. */
const withoutRetries = (script: string) =>
  script
    .replace('--retry 3', '--retry 0')
    .replace(/ --retry-max-time \w+/g, '')
    .replaceAll('upload --server', 'upload --retry-max-time 0 --server')

const json = (body: unknown) => (response: Parameters<RequestListener>[1], status: number) =>
  response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body))

const HALF = {
  success: false,
  message: 'the disk is full',
  result: ['https://img.example.com/one.png'],
  items: [{ index: 0, imgUrl: 'https://img.example.com/one.png' }],
  errors: [{ index: 1, message: 'the disk is full' }],
}

/** What may be there in the place of a server that stores everything, and what has to be said then. */
const SERVERS: [does: string, handle: RequestListener | undefined, said: RegExp, pretends?: true][] = [
  ['is down', undefined, /connect|nothing listens/i],
  [
    'refuses',
    (_, response) => json({ success: false, message: 'key is wrong' })(response, 401),
    /key is wrong|401/,
  ],
  ['stores half', (_, response) => json(HALF)(response, 502), /the disk is full|502/],
  [
    'is a proxy without a server',
    (_, response) => response.writeHead(502).end('<h1>Bad Gateway</h1>'),
    /502/,
  ],
  // Of servers with "alwaysOk", of PicList, of whoever else is there.
  ['stores half with 200', (_, response) => json(HALF)(response, 200), /the disk is full/, true],
  ['answers nothing with 200', (_, response) => response.end(), /.*/, true],
  [
    'answers a page',
    (_, response) => response.end('<h1>Log in</h1>'),
    /Log in|Invalid|not the response/,
    true,
  ],
  [
    'answers something else',
    (_, response) => json({ status: 'ok' })(response, 200),
    /error|ok|no link/,
    true,
  ],
]

/** Answers only when a request has been read. */
async function serve(port: number, handle: RequestListener): Promise<void> {
  const server = createServer((request, response) => {
    request.resume().on('end', () => handle(request, response))
  })
  await new Promise<void>(resolve => server.listen(port, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
}

it('there are recipes for curl, the command, GitHub and GitLab', () => {
  expect(RECIPES.size).toBeGreaterThanOrEqual(9)
  expect(GITHUB).toContain('GITHUB_STEP_SUMMARY')
})

it.for(SERVERS)(
  'a recipe fails and says why when the server %s',
  { timeout: 120_000 },
  async ([, handle, said, pretends], context) => {
    needsDesk(context)
    const desk = await prepareDesk()
    if (handle) await serve(Number(desk.port), handle)
    const all = handle ? AT_EVERY_SERVER : [...RECIPES]
    // A single command for a person shows the answer; a script has to judge it.
    const scripts = all.filter(([script]) => !pretends || /set -e|grep|upload-server/.test(script))
    expect(scripts.length).toBeGreaterThanOrEqual(5)
    for (const [script, file] of scripts) {
      const code = withoutRetries(script)
      const { status, printed } = await desk.attempt(code)
      expect(status, `${file}: ${code}${printed}`).toBeGreaterThan(0)
      expect(printed, `${file}: ${code}`).toMatch(said)
    }
    expect(await readFile(join(desk.directory, 'summary.md'), 'utf8').catch(() => '')).not.toContain('![](')
  },
)

it('the link of a screenshot that was not stored does not replace what the clipboard holds', async context => {
  needsDesk(context)
  const desk = await prepareDesk()
  const folder = join(desk.directory, '.config/upload-server')
  await mkdir(folder, { recursive: true })
  await writeFile(join(folder, 'config.json'), JSON.stringify({ limits: { fileSize: '1B' } }))
  const { status, printed } = await desk.attempt('upload-server upload --copy\n')
  expect(status).toBeGreaterThan(0)
  expect(printed).toContain('larger than 1 byte')
  expect(await desk.run('xclip -selection clipboard -t TARGETS -o')).toContain('image/png')
})

it('the script for MarkText prints one link for the path that it is run with', async context => {
  needsDesk(context)
  const desk = await prepareDesk()
  const blocks = DOCUMENTS.flatMap(({ blocks }) => blocks)
  await desk.run(blocks.find(({ code }) => code.includes('marktext-upload'))?.code ?? '')
  await copyFile(join(desk.directory, 'picture.png'), join(desk.directory, '-a $(b) "c".png'))
  expect(await desk.run(`./marktext-upload '-a $(b) "c".png' 2>&-`)).toMatch(/^http:\S+\n$/)
})

it('the recipe for GitHub stores pictures whatever they are called', { timeout: 60_000 }, async context => {
  needsDesk(context)
  const desk = await prepareDesk()
  const folder = join(desk.directory, 'screenshots')
  await rm(folder, { recursive: true })
  await mkdir(folder)
  const names = [
    'a b.png',
    `it's "quoted".png`,
    '[1-3] {a,b}.png',
    '截图 1.png',
    'a;type=text,b.png',
    '100% #1?&=+.png',
    '-v.png',
    '@file.png',
    'back\\slash $(id) `id` $HOME.png',
    'l\n::error::ine.png',
  ]
  for (const [index, name] of names.entries())
    await writeFile(join(folder, name), Buffer.concat([makePicture(), Buffer.from([index])]))
  // The same bytes under another name are another upload.
  await writeFile(join(folder, 'twin.png'), Buffer.concat([makePicture(), Buffer.from([0])]))
  await desk.serve('upload-server --port 36677\n')
  for (const _ of ['once', 'again']) {
    const { status, printed } = await desk.attempt(GITHUB)
    expect(status, printed).toBe(0)
  }
  const lines = (await readFile(join(desk.directory, 'summary.md'), 'utf8')).trim().split('\n')
  expect(lines).toHaveLength(2 * (names.length + 1))
  const links = lines.map(line => /^!\[\]\((http:[^\s"<>()]+)\)$/.exec(line)?.[1] ?? expect.fail(line))
  expect(links.slice(links.length / 2)).toEqual(links.slice(0, links.length / 2))
  const stored = await Promise.all([...new Set(links)].map(download))
  const sent = await Promise.all((await readdir(folder)).map(name => readFile(join(folder, name))))
  const hex = (all: Buffer[]) => new Set(all.map(one => one.toString('hex')))
  expect(hex(stored)).toEqual(hex(sent))
})
