import { isLocalUrl } from './editors.ts'
import type { Visitor } from './facts.ts'

export interface ExampleFacts {
  /** URL of the server, without a trailing slash. */
  readonly base: string
  readonly credential: Credential
}

/** What clients send: nothing, an upload key, or a user name and password for a reverse proxy that adds the key. */
export type Credential = 'none' | 'key' | 'password'

/**
 * The credential that the examples send. A visitor on the server's machine needs none, unless the URL is one that other
 * machines use. Behind a reverse proxy that knows people, clients send what that proxy accepts.
 */
export function credentialFor(visitor: Visitor, base: string): Credential {
  if (visitor.admittedBy === 'proxy')
    return visitor.signIn === 'network' ? 'none' : visitor.signIn === 'page' ? 'key' : 'password'
  if (visitor.admittedBy === 'loopback') return isLocalUrl(base) ? 'none' : 'key'
  return visitor.admittedBy === 'anonymous' ? 'none' : 'key'
}

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

/** Code to copy into a terminal, a program, an editor or a CI configuration. The CI examples always send a credential. */
export function examplesFor({ base, credential }: ExampleFacts) {
  const withKey = credential === 'key'
  const withPassword = credential === 'password'
  const variable = withPassword ? 'UPLOAD_USER' : 'UPLOAD_KEY'
  const always = withPassword ? '-u "$UPLOAD_USER"' : '-H "Authorization: Bearer $UPLOAD_KEY"'
  const sometimes = credential === 'none' ? '' : `${always} `
  const withName = base.replace('://', '://NAME:PASSWORD@')
  /**
   * A script for any POSIX shell. It stops with the reason if an image was not stored, the server is unreachable, or
   * something else responded. Only valid links reach the summary.
   */
  const uploadEach = (use: string, indent: string) =>
    `set -eu
for image in screenshots/*.png; do
  key=$(sha256sum "$image" | sha256sum | cut -c 1-64)
  link=$(curl -sS --globoff --fail-with-body --retry 3 ${always} \\
    -H "Idempotency-Key: $key" -H 'Accept: text/plain' -T "$image" ${base}/upload/) || link="failed: $link"
  case $link in
    *[[:space:]\\"\\<\\>]* | failed:*) printf '%s: %s' "$image" "$link" | tr '[:cntrl:]' ' ' >&2; exit 1 ;;
    http://?* | https://?*) ${use} ;;
    *) echo "$image: the response has no link" >&2; exit 1 ;;
  esac
done`.replace(/^/gm, indent)
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
    response = requests.post(
        '${base}/upload',
        files={'file': file},${PYTHON_ARGUMENTS[credential]}
    ).json()
if not response['success']:
    raise SystemExit(response['message'])
print(response['result'][0])`,

    typora: `upload-server upload --server ${withPassword ? withName : base}${withKey ? ' --key YOUR_KEY' : ''}`,

    github: `- name: Upload the screenshots
  env:
    ${variable}: \${{ secrets.${variable} }}
  run: |
${uploadEach('echo "![]($link)" >> "$GITHUB_STEP_SUMMARY"', '    ')}`,

    gitlab: `upload-screenshots:
  image: curlimages/curl
  script:
    - |
${uploadEach('echo "$link"', '      ')}`,

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
