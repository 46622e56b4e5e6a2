// Makes the images of the comment and of the report in this folder, with the program as it was built: npm run screenshots
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { micromark } from 'micromark'
import { gfmTable, gfmTableHtml } from 'micromark-extension-gfm-table'
import { PROGRAM, startBrowser, startServer } from './program.mjs'

const [OLD, NEW] = ['4b825dc642cb6eb9a060e54bf8d69288fbee4904', '9c1185a5c5e9fc54612808977ee8f548b2258d31']

const directory = await mkdtemp(join(tmpdir(), 'upload-server-review-'))
const local = { ci: { directory: join(directory, 'files'), serve: true } }
const server = await startServer(directory, { server: { port: 0 }, providers: { local } })
const browser = await startBrowser()
try {
  await takeScreenshots('#3355cc', false)
  await upload('push', OLD)
  await takeScreenshots('#2f4fc0', true)
  await upload('pull_request', NEW)
  const body = await readFile(join(directory, 'summary.md'), 'utf8')
  const width = Number(process.argv[2] ?? 900)
  await shoot('review-comment', { width, height: 100 }, async page => {
    await page.setContent(renderComment(body), { waitUntil: 'networkidle' })
  })
  await shoot('review-report', { width: 1280, height: 860 }, async page => {
    await page.goto(pathToFileURL(join(directory, 'report.html')).href, { waitUntil: 'networkidle' })
    await page.getByText('Slider').click()
    await page.waitForLoadState('networkidle')
  })
} finally {
  await browser.close()
  server.process.kill()
  await rm(directory, { recursive: true, force: true })
}

/** Takes screenshots of a small application, before or after a change. */
async function takeScreenshots(accent, isAfter) {
  const screens = {
    'settings/members.png': `<h1>Members</h1><p>Invite people to your workspace.</p>${isAfter ? '<input placeholder="Email address">' : ''}<button>Invite</button><table><tr><td>Ada</td><td>Owner</td></tr><tr><td>Grace</td><td>Member</td></tr></table>`,
    'settings/billing.png': `<h1>Billing</h1><p>You are on the ${isAfter ? 'team' : 'free'} plan.</p><button>Change plan</button>`,
    'login.png': '<h1>Sign in</h1><input placeholder="Email address"><button>Continue</button>',
    [isAfter ? 'reports/weekly.png' : 'reports/daily.png']:
      `<h1>Report</h1><p>${isAfter ? 'Week 48' : 'Saturday'}</p>`,
  }
  await rm(join(directory, 'shots'), { recursive: true, force: true })
  const page = await browser.newPage({ viewport: { width: 1000, height: 620 } })
  for (const [name, content] of Object.entries(screens)) {
    const color = name === 'login.png' ? '#3355cc' : accent
    await page.setContent(`<style>
      body { margin: 0; font: 17px sans-serif; background: #f4f5f8; color: #1d2129 }
      header { padding: 16px 28px; background: ${color}; color: #fff; font-weight: bold }
      main { margin: 28px; padding: 12px 32px 32px; background: #fff; border-radius: 10px }
      input { display: block; margin: 0 0 14px; padding: 10px; width: 300px; font: inherit }
      button { padding: 11px 20px; border: 0; border-radius: 6px; background: ${color}; color: #fff; font: inherit }
      table { margin-top: 24px; width: 100% } td { padding: 10px 0; border-top: 1px solid #ddd }
    </style><header>Acme</header><main>${content}</main>`)
    const path = join(directory, 'shots', name)
    await mkdir(dirname(path), { recursive: true })
    await page.screenshot({ path })
  }
  await page.close()
}

/** Uploads as a job of GitHub Actions does. The summary of the job has the text of the comment. */
async function upload(event, commit) {
  const [eventFile, summary] = [join(directory, 'event.json'), join(directory, 'summary.md')]
  const pull = { number: 7, head: { sha: commit } }
  await writeFile(eventFile, JSON.stringify({ repository: { default_branch: 'main' }, pull_request: pull }))
  await writeFile(summary, '')
  const args = ['upload', '--server', server.url, '--baseline', 'main', '--report', 'report.html']
  const child = spawn(PROGRAM, [...args, '--github-summary', 'shots'], {
    cwd: directory,
    stdio: ['ignore', 'ignore', 'inherit'],
    env: {
      PATH: process.env.PATH,
      GITHUB_ACTIONS: 'true',
      GITHUB_EVENT_NAME: event,
      GITHUB_EVENT_PATH: eventFile,
      GITHUB_REF: event === 'push' ? 'refs/heads/main' : 'refs/pull/7/merge',
      GITHUB_REPOSITORY: 'acme/app',
      GITHUB_SERVER_URL: 'https://github.com',
      GITHUB_RUN_ID: event === 'push' ? '1' : '2',
      GITHUB_STEP_SUMMARY: summary,
    },
  })
  const [code] = await once(child, 'exit')
  if (code !== 0) throw new Error(`The upload ended with ${code}.`)
}

async function shoot(name, viewport, prepare) {
  const page = await browser.newPage({ viewport })
  await prepare(page)
  const path = fileURLToPath(new URL(`${name}.png`, import.meta.url))
  await page.screenshot({ path, fullPage: viewport.height === 100 })
  await page.close()
}

/** A page like that of a Git host, which shortens the hashes of commits. */
function renderComment(body) {
  const markdown = body.replace(/\b([0-9a-f]{7})[0-9a-f]{33}\b/g, '[`$1`](#)')
  const content = micromark(markdown, {
    allowDangerousHtml: true,
    extensions: [gfmTable()],
    htmlExtensions: [gfmTableHtml()],
  })
  return `<!doctype html><style>
    body { margin: 16px; font: 14px/1.5 -apple-system, 'Segoe UI', sans-serif; color: #1f2328 }
    .comment { border: 1px solid #d1d9e0; border-radius: 6px }
    .by { padding: 8px 16px; background: #f6f8fa; border-bottom: 1px solid #d1d9e0; border-radius: 6px 6px 0 0 }
    .body { padding: 16px }
    h3 { margin: 0 0 16px; font-size: 1.25em } p, table { margin: 0 0 16px }
    a { color: #0969da } code { padding: 0.2em 0.4em; background: #eff1f3; border-radius: 6px; font-size: 85% }
    table { display: block; width: max-content; max-width: 100%; overflow: auto; border-spacing: 0; border-collapse: collapse }
    th, td { padding: 6px 13px; border: 1px solid #d1d9e0 } img { max-width: 100%; box-sizing: content-box }
  </style><div class="comment"><div class="by"><b>github-actions</b> bot commented</div>
  <div class="body">${content}</div></div>`
}
