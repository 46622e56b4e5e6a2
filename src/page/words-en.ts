import type { ErrorCode } from '../errors.ts'

/** What a failure is called, by its code; the server's message follows. */
const failures: Record<ErrorCode, string> = {
  invalid_request: 'The server does not understand this',
  no_file: 'No file arrived',
  unknown_destination: 'There is no such destination',
  path_not_allowed: 'This destination takes no folder',
  ambiguous_destination: 'The destination is not clear',
  unauthorized: 'An upload key is needed',
  destination_forbidden: 'This key may not use that destination',
  source_forbidden: 'This may not be sent from here',
  not_found: 'There is nothing at this address',
  unknown_finalization: 'This upload is not waiting to be finished',
  method_not_allowed: 'This is not possible here',
  request_timeout: 'The file stopped arriving',
  too_large: 'Too large',
  source_failed: 'It could not be fetched',
  idempotency_key_reused: 'This was sent before, with other content',
  rate_limited: 'Too many wrong keys',
  internal_error: 'The server made a mistake',
  delivery_failed: 'The destination refused it',
  delivery_timeout: 'The destination did not answer in time',
  overloaded: 'The server is busy',
  shutting_down: 'The server is going down',
  store_unavailable: 'The server cannot reach its store',
  insufficient_storage: 'A disk is full',
}

/** Everything the page says, in English. `{name}` and the like are filled in, `code` stands between backticks. */
export const en = {
  lang: 'en',
  other: { label: '中文', lang: 'zh-Hans', query: 'zh' },
  headline: 'Send a file, get its link',
  lead: 'This server takes pictures and other files from programs, editors, CI and this page.',
  address: 'Address for programs',
  skip: 'Skip to the content',
  contents: 'Contents',

  try: {
    title: 'Try it',
    noScript: 'Trying it out here needs JavaScript. The examples below work without.',
    drop: 'Drop files anywhere',
    dropMore: 'or paste them, or',
    choose: 'Choose files',
    url: 'Or the address of a file, which the server fetches',
    send: 'Send',
    destination: 'Destination',
    standard: 'default',
    limits: 'Up to {size} a file.',
    admitted: {
      loopback: 'You are on the server’s machine. No key is needed.',
      key: 'Your key is accepted.',
      anonymous: 'This server takes uploads without a key.',
    },
    key: 'Upload key',
    useKey: 'Use this key',
    keepKey: 'Keep it until this tab is closed',
    formats: 'Copy links as',
    copyAll: 'Copy all',
    clear: 'Clear the list',
    uploads: 'Uploads',
  },

  /** For the script. */
  script: {
    copy: 'Copy',
    copied: 'Copied',
    copyFailed: 'Your browser lets no page copy. The text is selected: press Ctrl+C.',
    link: 'Link of {name}',
    cancel: 'Cancel',
    again: 'Try again',
    finish: 'Finish',
    waiting: 'Waiting',
    sending: 'Sending, {percent} %',
    storing: 'Storing…',
    stored: 'Stored',
    tally: '{stored} of {all} stored',
    storedName: '{name} is stored.',
    failedName: '{name} is not stored: {reason}.',
    pending: 'Stored, but not finished',
    pendingHelp: 'Finishing does not upload it again.',
    cancelled: 'Cancelled',
    unreachable: 'The server can’t be reached',
    unreachableHelp: 'The connection broke off. Trying again stores nothing twice.',
    unreadable: 'This was not the server’s own answer',
    unreadableHelp: 'Something between you and the server answered with status {status}.',
    folder: 'A folder can’t be sent',
    folderHelp: 'Choose the files in it.',
    badUrl: 'This is no http or https address',
    keyAccepted: 'The key is accepted.',
    keyRefused: 'The key is not accepted.',
    requestId: 'request {id}',
    failures,
  },

  destinations: {
    title: 'Destinations',
    known: 'Without a choice, files go to the default one. What is added to the address chooses another.',
    unknown:
      'A request chooses its destination by `?picbed=TYPE&configName=NAME`; without, the file goes to the default one. Which names there are is shown to callers who may upload: give the key above.',
  },

  groups: { programs: 'Terminal and programs', editors: 'Editors', ci: 'CI' },
  examples: {
    curl: 'The field may have any name, and there may be many files. The answer has one link for each, in the same order.',
    curlBare: 'Or the file as it is, and nothing but its link as the answer:',
    fetch: 'In Node. In a browser the file comes from an input or a drop.',
    python: 'With the package `requests`.',
    typora: 'Preferences → Image → Image Uploader → Custom Command. Test it with “Test Uploader” there.',
    typoraLocal: 'Or choose PicGo (app): Typora then talks to this server by itself.',
    obsidian: 'Plugin “Image auto upload”: default uploader PicGo (app), and this as the server’s address.',
    obsidianRemote: 'Switch “Upload with remote server” on there.',
    vscode: 'Extension “PicList”, in `settings.json`.',
    github: 'A step of a job. It puts the pictures into the summary of the run.',
    gitlab: 'A job. It prints one link a line.',
    secret: 'Store the key as a secret named `UPLOAD_KEY`.',
    variable: 'Store the key as a masked variable named `UPLOAD_KEY`.',
    loopback:
      'This address leads to the server from its own machine only. Open this page under the address that others use, or set `server.publicUrl`.',
    exportKey: 'Put the key into the environment first: `export UPLOAD_KEY=…`',
  },

  answers: {
    title: 'Answers',
    success: 'Every file was stored: status 200, one link for each input in `result`.',
    failure:
      'Something was not: status 400 or above. `message` says what happened and what to do, `errors` which input it was; `result` has the links of those that were stored.',
    pending:
      'Stored, but a last step failed: status 424. Repeating it with the id finishes without uploading again.',
  },

  more: {
    title: 'More',
    shareX: 'ShareX',
    shareXText: 'Open this file with ShareX, and it uploads here.',
    list: 'Addresses, and paths on the server’s machine',
    listText: 'Paths are absolute, and for callers on that machine.',
    clipboard: 'The clipboard of the server’s machine',
    clipboardText: 'A request without a body.',
    key: 'The key',
    keyText:
      'Programs on the server’s machine need none. Others send it as `Authorization: Bearer …` or `X-Upload-Key`; `?key=…` works as well, but addresses are easily logged.',
    machines: 'For programs that read descriptions',
    machinesText: 'This interface as OpenAPI 3.1:',
    metricsText: 'Figures for Prometheus are at `/metrics` once `metrics.enabled` is set.',
    alive: 'Is it there?',
    aliveText: 'Answers `{"success":true,"result":"alive"}`, without a key.',
  },
}

export type Words = typeof en
