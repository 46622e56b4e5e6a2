export interface ExampleFacts {
  /** Address of the server, without a final slash. */
  readonly base: string
  /** Whether the caller needs an upload key. */
  readonly withKey: boolean
}

/** What a person copies into a terminal, a program, an editor or a CI configuration. CI always needs a key. */
export function examplesFor({ base, withKey }: ExampleFacts) {
  const bearer = '-H "Authorization: Bearer $UPLOAD_KEY"'
  return {
    curl: `curl ${withKey ? `${bearer} ` : ''}-F file=@picture.png ${base}/upload`,

    curlBare: `curl ${withKey ? `${bearer} ` : ''}-H "Accept: text/plain" -T picture.png ${base}/upload/`,

    fetch: `import { openAsBlob } from 'node:fs'

const form = new FormData()
form.append('file', await openAsBlob('picture.png'), 'picture.png')
const response = await fetch('${base}/upload', {
  method: 'POST',${withKey ? "\n  headers: { 'X-Upload-Key': process.env.UPLOAD_KEY }," : ''}
  body: form,
})
const { success, result, message } = await response.json()
if (!success) throw new Error(message)
console.log(result[0])`,

    python: `${withKey ? 'import os\n' : ''}import requests

with open('picture.png', 'rb') as file:
    answer = requests.post(
        '${base}/upload',
        files={'file': file},${withKey ? "\n        headers={'Authorization': 'Bearer ' + os.environ['UPLOAD_KEY']}," : ''}
    ).json()
if not answer['success']:
    raise SystemExit(answer['message'])
print(answer['result'][0])`,

    typora: `upload-server upload --server ${base}${withKey ? ' --key YOUR_KEY' : ''}`,

    obsidian: `${base}/upload${withKey ? '?key=YOUR_KEY' : ''}`,

    vscode: withKey
      ? `"piclist.uploadAPIUrl": "${base}/upload?key=YOUR_KEY",\n"piclist.remoteServerMode": true`
      : `"piclist.uploadAPIUrl": "${base}/upload"`,

    github: `- name: Upload the screenshots
  env:
    UPLOAD_KEY: \${{ secrets.UPLOAD_KEY }}
  run: |
    for file in screenshots/*.png; do
      curl -sS ${bearer} -F "file=@$file" \\
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
        curl -sS ${bearer} -F "file=@$file" \\
          "${base}/upload" |
          jq -er '.result[0] // error(.message)' || exit 1
      done`,

    list: `curl ${withKey ? `${bearer} ` : ''}${base}/upload \\
  -d '{"list": ["https://example.com/picture.png"${withKey ? '' : ', "/home/me/picture.png"'}]}'`,

    clipboard: `curl ${withKey ? `${bearer} ` : ''}-X POST ${base}/upload`,

    heartbeat: `curl ${base}/heartbeat`,

    success: `{"success":true,"result":["https://…/picture-1a2b3c4d.png"],"items":[…]}`,

    failure: `{"success":false,"message":"…","code":"source_failed","errors":[{"index":0,"message":"…"}],"requestId":"…"}`,

    pending: `{"success":false,"stage":"finalization","finalizationId":"ID","message":"…"}`,

    finish: `curl ${withKey ? `${bearer} ` : ''}-X POST "${base}/upload?finalizationId=ID"`,
  }
}
