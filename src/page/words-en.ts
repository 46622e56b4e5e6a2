/** The title of a failure, by its error code. The server's message follows it. A test checks that each code has one. */
const failures = {
  invalid_request: 'Invalid request',
  no_file: 'No file was received',
  unknown_destination: 'Unknown destination',
  path_forbidden: 'This destination does not accept a folder',
  expiry_forbidden: 'This destination does not allow that expiry time',
  ambiguous_destination: 'The destination is ambiguous',
  unauthorized: 'An upload key is required',
  destination_forbidden: 'This key may not use that destination',
  source_forbidden: 'This source is not allowed',
  origin_forbidden: 'A page of another site sent this request',
  not_found: 'Not found',
  unknown_finalization: 'No pending upload has this ID',
  method_not_allowed: 'Method not allowed',
  request_timeout: 'The transfer stalled and timed out',
  too_large: 'File too large',
  source_failed: 'The source could not be read',
  idempotency_key_reused: 'This Idempotency-Key was used for a different request',
  quota_exceeded: 'Quota used up',
  type_forbidden: 'File type not permitted',
  rate_limited: 'Too many attempts with a wrong key',
  internal_error: 'Internal server error',
  destination_failed: 'The upload to the destination failed',
  destination_timeout: 'The destination did not respond in time',
  overloaded: 'The server is busy',
  shutting_down: 'The server is shutting down',
  database_unavailable: 'The server can’t reach its database',
  identity_unavailable: 'The server can’t check who you are at the moment',
  insufficient_storage: 'No disk space left',
}

/** All texts of the page in English. `{name}` and similar placeholders are filled in; backticks mark code. */
export const en = {
  lang: 'en',
  other: { label: '中文', lang: 'zh-Hans', query: 'zh' },
  headline: 'Upload a file, get a link',
  lead: 'Programs, editors and CI jobs can upload here too. The response contains one link per file.',
  uploadUrl: 'Upload URL',
  skip: 'Skip to the content',
  contents: 'Contents',

  upload: {
    title: 'Upload',
    noScript: 'Uploading from this page needs JavaScript. The examples below work without it.',
    drop: 'Drop files anywhere',
    dropMore: 'or paste them, or',
    choose: 'Choose files',
    url: 'Or enter the URL of a file, which the server then downloads',
    send: 'Upload',
    destination: 'Destination',
    default: 'default',
    limits: 'Up to {size} per file.',
    admitted: {
      loopback: 'You are on the server’s machine. No key is needed.',
      key: 'Your key is accepted.',
      proxy: 'You are signed in{as}. No key is needed.',
      anonymous: 'This server accepts uploads without a key.',
    },
    key: 'Upload key',
    useKey: 'Use this key',
    keepKey: 'Keep the key',
    keep: {
      page: 'until this page is closed',
      tab: 'until this tab is closed',
      device: 'on this device',
    },
    formats: 'Copy links as',
    autoCopy: 'Copy new links automatically',
    copyAll: 'Copy all',
    retryAll: 'Retry all',
    total: 'Progress of all files',
    expiry: 'Delete after',
    never: 'never',
    clear: 'Clear the list',
    uploads: 'Uploads',
    askForKey: 'Ask the person who runs this server for a key.',
    unclear: 'The proxy in front of this server does not say clearly who you are',
    forOwner: 'I run this server',
  },

  images: {
    title: 'Convert and resize images',
    unchanged: 'unchanged',
    format: 'Format',
    quality: 'Quality, 1 to 100',
    width: 'Maximum width in pixels',
    height: 'Maximum height in pixels',
    stripMetadata: 'Remove metadata, such as the GPS location',
  },

  recent: {
    title: 'Recent uploads from this browser',
    search: 'Search names and links',
    clear: 'Delete this browser’s list',
    none: 'No matching uploads.',
  },

  /** For the script. */
  script: {
    copy: 'Copy',
    copied: 'Copied',
    copyFailed: 'Your browser blocked copying. The text is selected: press Ctrl+C (⌘C on a Mac).',
    link: 'Link of {name}',
    open: 'Open',
    qrCode: 'QR code',
    qrTitle: 'QR code of {name}',
    close: 'Close',
    cancel: 'Cancel',
    retry: 'Retry',
    complete: 'Complete',
    waiting: 'Waiting',
    sending: 'Uploading, {percent} %',
    pace: '{sent} of {all} · {speed}/s · {left} left',
    storing: 'Storing…',
    stored: 'Uploaded',
    tally: '{stored} of {all} uploaded',
    tallyFailed: '{failed} failed',
    offline: 'waiting for the server',
    offlineHelp: 'The upload is retried automatically when the server responds. Nothing is stored twice.',
    expires: 'Expires {time}',
    storedName: '{name} was uploaded.',
    failedName: '{name} was not uploaded: {reason}.',
    pending: 'Uploaded, but a post-upload step failed',
    pendingHelp: '“Complete” runs the step again. The file is not uploaded again.',
    cancelled: 'Cancelled',
    limitHelp: 'The maximum file size is {size}. This file has {own}.',
    keyHelp: 'Enter your key above. The file is then uploaded automatically.',
    unreachable: 'The server can’t be reached',
    unreachableHelp: 'The connection was lost. You can retry safely: nothing is stored twice.',
    foreign: 'The response is not from this server',
    foreignHelp: 'Something between you and the server responded with status {status}.',
    folder: 'Folders can’t be uploaded',
    folderHelp: 'Choose the files in the folder instead.',
    localLinks:
      'Links that begin with {base} work only on this machine. To share them, open this page at the URL that other machines use, or set `server.publicUrl`.',
    heic: 'Most browsers can’t show HEIC images.',
    asJpeg: 'Upload as JPEG',
    autoCopied: 'Links copied: {count}',
    loading: 'Asking the server…',
    badUrl: 'This is not an http or https URL',
    keyAccepted: 'The key is accepted.',
    keyRefused: 'The key is not accepted.',
    requestId: 'request {id}',
    historyTitle: 'Your recent uploads',
    historyFailed:
      'The server’s list of your uploads can’t be shown: {reason}. This is the list kept by this browser.',
    failures,
  },

  destinations: {
    title: 'Destinations',
    known:
      'Files go to the default destination. To choose another one, add its parameters to the upload URL.',
    unknown:
      'Files go to the default destination. To choose another one, add `?destination=TYPE/NAME` to the upload URL. Enter your key above to see the available destinations.',
  },

  groups: { programs: 'Terminal and programs', editors: 'Editors', ci: 'CI' },
  examples: {
    curl: 'The form field can have any name, and you can send several files. The response has one link per file, in the same order.',
    curlBare: 'Or send the file as the request body, and get only its link back:',
    fetch: 'For Node. In a browser, take the file from a file input or a drop event.',
    python: 'Needs the package `requests`.',
    github: 'A step of a job. It adds the images to the job summary.',
    gitlab: 'A job that prints one link per line.',
    secret: 'Save the key as a secret named `UPLOAD_KEY`.',
    variable: 'Save the key as a masked variable named `UPLOAD_KEY`.',
    loopback:
      'This URL, and links that begin with it, work only on the server’s own machine. Open this page at the URL that other machines use, or set `server.publicUrl`.',
    exportUser:
      'You are signed in by a proxy in front of this server. If it asks for a user name and password, programs can send them. Set them first: `export UPLOAD_USER=NAME:PASSWORD`. Single sign-on needs a browser: programs then need an upload key, and the proxy must let their requests through.',
    signInPage:
      'You are signed in by a proxy in front of this server. Programs can’t sign in there: they need an upload key, and the proxy must let their requests through. Ask the person who runs this server.',
    signInNetwork:
      'A proxy in front of this server recognizes your machine. Programs on it need no key; those on other machines, such as CI jobs, need an upload key.',
    noSignIn: 'This plugin can send a key, but can’t sign in. The proxy must let its requests through.',
    secretUser: 'Save `NAME:PASSWORD` as a secret named `UPLOAD_USER`.',
    variableUser: 'Save `NAME:PASSWORD` as a masked variable named `UPLOAD_USER`.',
    exportKey: 'Set the key first: `export UPLOAD_KEY=…`',
  },

  /** What to set in editors; the values come from `editors.ts`. Labels are quoted as the editors write them. */
  editors: {
    typora:
      'In Preferences → Image, set **Image Uploader** to **Custom Command** and enter the command. Click **Test Uploader** to try it:',
    typoraPicGo:
      'In Preferences → Image, set **Image Uploader** to **PicGo(app)**. Nothing else is needed. Or set it to **Custom Command** and enter the command:',
    obsidian:
      'In the plugin **Image auto upload**, set **Default uploader** to **PicGo(app)** and **PicGo server upload route** to:',
    obsidianRemote:
      'In the plugin **Image auto upload**, set **Default uploader** to **PicGo(app)**, turn on **Remote server mode**, and set **PicGo server upload route** to:',
    vscode: 'Install the extension **PicList** and add to `settings.json`:',
  },

  responses: {
    title: 'Responses',
    success: 'Every file was stored: status 200, with one link per input in `result`.',
    failure:
      'At least one file was not stored: status 400 or above. `message` gives the reason and what to do. `errors` lists the failed inputs, and `result` has the links of the files that were stored.',
    pending:
      'Every file was stored, but a post-upload step failed: status 424. Send the ID to run the step again, without another upload.',
  },

  more: {
    title: 'More',
    shareX: 'ShareX',
    shareXText: 'Open this file with ShareX to make it upload here.',
    list: 'URLs, and paths on the server’s machine',
    listText: 'Paths must be absolute. Unless configured otherwise, only local clients may send them.',
    clipboard: 'Clipboard of the server’s machine',
    clipboardText: 'Send a request without a body.',
    key: 'Upload key',
    keyText:
      'Local clients need no key. Remote clients send it as `Authorization: Bearer …` or `X-Upload-Key`. `?key=…` works too, but URLs often end up in logs.',
    openApi: 'API description',
    openApiText: 'This API as OpenAPI 3.1:',
    metricsText: 'Metrics for Prometheus are served at `/metrics` when `metrics.enabled` is set.',
    health: 'Health check',
    healthText: 'Returns `{"success":true,"result":"alive"}`. No key is needed.',
  },
}

export type Words = typeof en
