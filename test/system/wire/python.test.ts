import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it, type TestContext } from 'vitest'
import { expectNoClipboard, expectStored } from '../../helpers/expect-answer.ts'
import type { Answer } from '../../helpers/form.ts'
import { needs } from '../../helpers/needs.ts'
import { makePicture } from '../../helpers/picture.ts'
import { runProgram } from '../../helpers/run-program.ts'
import { startApp, type TestApp } from '../../helpers/start-app.ts'

/** What the scripts below begin with: where the server is, which file to send and the headers of `requests`. */
const BEGINNING = `
import http.client, json, os, sys, urllib.parse, urllib.request
port, path = int(sys.argv[1]), sys.argv[2]
url = 'http://127.0.0.1:%d/upload' % port
with open(path, 'rb') as file: data = file.read()
LIKE_REQUESTS = {'User-Agent': 'python-requests/2.34.0', 'Accept-Encoding': 'gzip, deflate',
                 'Accept': '*/*', 'Connection': 'keep-alive'}
def form(disposition):
    # As requests does it: a boundary of 32 digits, and no type for the part.
    boundary = os.urandom(16).hex()
    body = (b'--' + boundary.encode() + b'\\r\\n' + disposition.encode() + b'\\r\\n\\r\\n' + data
            + b'\\r\\n--' + boundary.encode() + b'--\\r\\n')
    return body, 'multipart/form-data; boundary=' + boundary
def send(body, **headers):
    connection = http.client.HTTPConnection('127.0.0.1', port)
    connection.request('POST', '/upload', body, {**LIKE_REQUESTS, **{k.replace('_', '-'): v for k, v in headers.items()}})
    answer = connection.getresponse()
    show(answer.status, answer.read())
def show(status, body): print(json.dumps({'status': status, 'answer': json.loads(body)}))
`

async function runPython(context: TestContext, script: string, name = '图 "1".png') {
  needs(context, 'python3', 'python3')
  const app = await startApp()
  const file = makePicture()
  const path = join(app.directory, name)
  await writeFile(path, file)
  return { file, path, answer: await run(app, script, path) }
}

async function run(app: TestApp, script: string, path: string): Promise<Answer> {
  const args = ['-c', BEGINNING + script, new URL(app.url).port, path]
  const { stdout, stderr } = await runProgram('python3', args)
  expect(stderr).toBe('')
  const { status, answer } = JSON.parse(stdout)
  return { ...answer, status, headers: new Headers({ 'access-control-allow-origin': '*' }) }
}

it.for([
  ['json=', "send(json.dumps({'list': [path]}), Content_Type='application/json')"],
  ['data=json.dumps(), without any type', "send(json.dumps({'list': [path]}))"],
  ['letters beyond ASCII as they are', "send(json.dumps({'list': [path]}, ensure_ascii=False).encode())"],
] as const)('requests with %s', async ([_how, script], context) => {
  const { file, path, answer } = await runPython(context, script)
  await expectStored(answer, [file])
  expect(answer.items[0]?.origin).toBe(path)
})

it.for([
  ['requests with files=', `filename="%s"' % os.path.basename(path).replace('"', '%22')`],
  [
    'urllib3 before 1.25, which knows only filename*',
    `filename*=utf-8\\'\\'%s' % urllib.parse.quote(os.path.basename(path))`,
  ],
] as const)('%s: a part without a type', async ([_stack, name], context) => {
  const script = `
body, kind = form('Content-Disposition: form-data; name="file"; ${name})
send(body, Content_Type=kind)`
  const { file, answer } = await runPython(context, script)
  await expectStored(answer, [file])
  expect(answer.items[0]).toMatchObject({ origin: '图 "1".png', contentType: 'image/png' })
})

it.for([
  [
    'a form with a raw name',
    `
body, kind = form('Content-Disposition: form-data; name="files"; filename="%s"' % os.path.basename(path))`,
  ],
  [
    'JSON, labelled as a form in an address by urllib',
    "body, kind = json.dumps({'list': [path]}).encode(), None",
  ],
] as const)('urllib with %s and "Connection: close"', async ([_what, script], context) => {
  const { file, answer } = await runPython(
    context,
    `${script}
request = urllib.request.Request(url, body, {'Content-Type': kind} if kind else {})
with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request) as answer: show(answer.status, answer.read())`,
  )
  await expectStored(answer, [file])
})

it('http.client with chunks of unknown number', async context => {
  const script = `
body, kind = form('Content-Disposition: form-data; name="file"; filename="a.png"')
send((body[i:i + 100] for i in range(0, len(body), 100)), Content_Type=kind)`
  const { file, answer } = await runPython(context, script)
  await expectStored(answer, [file])
})

it('requests.post(url) without anything: the clipboard', async context => {
  needs(context, 'python3', 'python3')
  const app = await startApp()
  const path = join(app.directory, 'unused')
  await writeFile(path, '')
  await expectNoClipboard(run(app, 'send(None, Content_Length="0")', path))
})
