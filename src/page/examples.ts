export interface ExampleFacts {
  /** Address of the server, without a final slash. */
  readonly base: string
  readonly credential: Credential
}

/** What callers send: nothing, an upload key, or name and password for a proxy that then sends the key. */
export type Credential = 'none' | 'key' | 'password'

const FETCH_HEADERS: Record<Credential, string> = {
  none: '',
  key: "\n  headers: { 'X-Upload-Key': process.env.UPLOAD_KEY },",
  password:
    "\n  headers: { Authorization: 'Basic ' + Buffer.from(process.env.UPLOAD_USER).toString('base64') },",
}

const PYTHON_ARGUMENTS: Record<Credential, string> = {
  none: '',
  key: "\n        headers={'Authorization': 'Bearer ' + os.environ['UPLOAD_KEY']},",
  password: "\n        auth=tuple(os.environ['UPLOAD_USER'].split(':', 1)),",
}

/** What a person copies into a terminal, a program, an editor or a CI configuration. CI always needs a key. */
export function examplesFor({ base, credential }: ExampleFacts) {
  const withKey = credential === 'key'
  const withPassword = credential === 'password'
  const variable = withPassword ? 'UPLOAD_USER' : 'UPLOAD_KEY'
  const always = withPassword ? '-u "$UPLOAD_USER"' : '-H "Authorization: Bearer $UPLOAD_KEY"'
  const sometimes = credential === 'none' ? '' : `${always} `
  const withName = base.replace('://', '://NAME:PASSWORD@')
  // Editors' plugins send no password.
  const keyInQuery = credential === 'none' ? '' : '?key=YOUR_KEY'
  return {
    curl: `curl ${sometimes}-F file=@picture.png ${base}/upload`,

    curlBare: `curl ${sometimes}-H "Accept: text/plain" -T picture.png ${base}/upload/`,

    fetch: `import { openAsBlob } from 'node:fs'

const form = new FormData()
form.append('file', await openAsBlob('picture.png'), 'picture.png')
const response = await fetch('${base}/upload', {
  method: 'POST',${FETCH_HEADERS[credential]}
  body: form,
})
const { success, result, message } = await response.json()
if (!success) throw new Error(message)
console.log(result[0])`,

    python: `${credential === 'none' ? '' : 'import os\n'}import requests

with open('picture.png', 'rb') as file:
    answer = requests.post(
        '${base}/upload',
        files={'file': file},${PYTHON_ARGUMENTS[credential]}
    ).json()
if not answer['success']:
    raise SystemExit(answer['message'])
print(answer['result'][0])`,

    typora: `upload-server upload --server ${withPassword ? withName : base}${withKey ? ' --key YOUR_KEY' : ''}`,

    obsidian: `${base}/upload${keyInQuery}`,

    vscode: `"piclist.uploadAPIUrl": "${base}/upload${keyInQuery}"${keyInQuery && ',\n"piclist.remoteServerMode": true'}`,

    github: `- name: Upload the screenshots
  env:
    ${variable}: \${{ secrets.${variable} }}
  run: |
    for file in screenshots/*.png; do
      curl -sS ${always} -F "file=@$file" \\
        "${base}/upload" |
        jq -er '"![](\\(.result[0] // error(.message)))"' >> "$GITHUB_STEP_SUMMARY"
    done`,

    gitlab: `upload-screenshots:
  image: alpine
  before_script:
    - apk add --no-cache curl jq
  script:
    - |
      for file in screenshots/*.png; do
        curl -sS ${always} -F "file=@$file" \\
          "${base}/upload" |
          jq -er '.result[0] // error(.message)' || exit 1
      done`,

    list: `curl ${sometimes}${base}/upload \\
  -d '{"list": ["https://example.com/picture.png"${credential === 'none' ? ', "/home/me/picture.png"' : ''}]}'`,

    clipboard: `curl ${sometimes}-X POST ${base}/upload`,

    heartbeat: `curl ${base}/heartbeat`,

    success: `{"success":true,"result":["https://…/picture-1a2b3c4d.png"],"items":[…]}`,

    failure: `{"success":false,"message":"…","code":"source_failed","errors":[{"index":0,"message":"…"}],"requestId":"…"}`,

    pending: `{"success":false,"stage":"finalization","finalizationId":"ID","message":"…"}`,

    finish: `curl ${sometimes}-X POST "${base}/upload?finalizationId=ID"`,
  }
}
