/**
 * All texts of the page in English. Placeholders such as `{name}` are filled in; backticks mark code, and asterisks labels of
 * other programs.
 */
export const en = {
  lang: 'en',
  other: { label: '中文', lang: 'zh-Hans', query: 'zh' },
  headline: 'Upload a file, get a link',

  upload: {
    noScript: 'Uploading from this page needs JavaScript. The examples below work without it.',
    loading: 'Asking the server…',
    drop: 'Drop files anywhere',
    dropMore: 'or paste them, or',
    choose: 'Choose files',
    url: 'Or enter the URL of a file, which the server then downloads',
    send: 'Upload',
    destination: 'Destination',
    default: 'default',
    expiry: 'Delete after',
    never: 'never',
    limits: 'Up to {size} per file.',
    admitted: {
      loopback: 'You are on the server’s machine. No key is needed.',
      key: 'Your key is accepted.',
      proxy: 'You are signed in{as}. No key is needed.',
      anonymous: 'This server accepts uploads without a key.',
    },
    askForKey: 'Ask the person who runs this server for a key.',
    unclear: 'The proxy in front of this server does not say clearly who you are',
    forOwner: 'I run this server',
    uploads: 'Uploads',
    formats: 'Copy links as',
    autoCopy: 'Copy new links automatically',
    copyAll: 'Copy all',
    retryAll: 'Retry all',
    clear: 'Clear the list',
  },

  key: {
    title: 'Upload key',
    use: 'Use this key',
    keep: 'Remember the key on this device',
    accepted: 'The key is accepted.',
    refused: 'The key is not accepted.',
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
    history: 'Your recent uploads',
    historyFailed:
      'The server’s list of your uploads can’t be shown: {reason}. This is the list kept by this browser.',
    search: 'Search names and links',
    clear: 'Delete this browser’s list',
    none: 'No matching uploads.',
  },

  /** The links, and what can be done with them. */
  link: {
    name: 'Link of {name}',
    copy: 'Copy',
    copied: 'Copied',
    copyFailed: 'Your browser blocked copying. The text is selected: press Ctrl+C (⌘C on a Mac).',
    autoCopied: 'Links copied: {count}',
    open: 'Open',
    qrCode: 'QR code',
    close: 'Close',
    expires: 'Expires {time}',
    isLocal:
      'Links that begin with {base} work only on this machine. To share them, open this page at the URL that other machines use, or set `server.publicUrl`.',
    heic: 'Most browsers can’t show HEIC images.',
    asJpeg: 'Upload as JPEG',
  },

  /** The states of an upload, and how to continue. */
  state: {
    waiting: 'Waiting',
    sending: 'Uploading, {percent} %',
    storing: 'Storing…',
    stored: 'Uploaded',
    cancelled: 'Cancelled',
    cancel: 'Cancel',
    retry: 'Retry',
    pending: 'Uploaded, but a post-upload step failed',
    pendingHelp: '“Complete” runs the step again. The file is not uploaded again.',
    complete: 'Complete',
    tally: '{stored} of {all} uploaded',
    tallyFailed: '{failed} failed',
    offline: 'waiting for the server',
    offlineHelp: 'The upload is retried automatically when the server responds. Nothing is stored twice.',
    unreachable: 'The server can’t be reached',
    unreachableHelp: 'The connection was lost. You can retry safely: nothing is stored twice.',
    foreign: 'The response is not from this server',
    foreignHelp: 'Something between you and the server responded with status {status}.',
    keyHelp: 'Enter your key above. The file is then uploaded automatically.',
    limitHelp: 'The maximum file size is {size}. This file has {own}.',
    folder: 'Folders can’t be uploaded',
    folderHelp: 'Choose the files in the folder instead.',
    badUrl: 'This is not an http or https URL',
    failed: 'The upload failed',
    requestId: 'request {id}',
  },

  /** The titles of failures that a visitor can meet, by error code. The server's message follows. Others are `state.failed`. */
  failures: {
    invalid_request: 'Invalid request',
    unauthorized: 'An upload key is required',
    destination_forbidden: 'This key may not use that destination',
    source_forbidden: 'This source is not allowed',
    origin_forbidden: 'A page of another site sent this request',
    unknown_finalization: 'No pending upload has this ID',
    request_timeout: 'The transfer stalled and timed out',
    too_large: 'File too large',
    source_failed: 'The source could not be read',
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
  } as Readonly<Record<string, string>>,

  /** The documentation below the uploader. */
  guide: {
    programs: 'Terminal and programs',
    lead: 'Programs, editors and CI jobs can upload here too. The response contains one link per file.',
    uploadUrl: 'Upload URL',
    exportKey: 'Set the key first: `export UPLOAD_KEY=…`',
    exportUser:
      'You are signed in by a proxy in front of this server. If it asks for a user name and password, programs can send them. Set them first: `export UPLOAD_USER=NAME:PASSWORD`. Single sign-on needs a browser: programs then need an upload key, and the proxy must let their requests through.',
    signInPage:
      'You are signed in by a proxy in front of this server. Programs can’t sign in there: they need an upload key, and the proxy must let their requests through. Ask the person who runs this server.',
    signInNetwork:
      'A proxy in front of this server recognizes your machine. Programs on it need no key; those on other machines, such as CI jobs, need an upload key.',
    noSignIn: 'This plugin can send a key, but can’t sign in. The proxy must let its requests through.',
    curl: 'The form field can have any name, and you can send several files. The response has one link per file, in the same order.',
    curlBare: 'Or send the file as the request body, and get only its link back:',
    ci: 'In GitHub Actions, GitLab CI and others: save the key as a secret, and pass it to the job as `UPLOAD_SERVER_KEY`. The command prints one link per line. `docs/ci` of upload-server has complete jobs, also with curl only.',
    loopback:
      'This URL, and links that begin with it, work only on the server’s own machine. Open this page at the URL that other machines use, or set `server.publicUrl`.',
    editors: 'Editors',
    destinations: 'Destinations',
    known:
      'Files go to the default destination. To choose another one, add its parameters to the upload URL.',
    unknown:
      'Files go to the default destination. To choose another one, add `?destination=TYPE/NAME` to the upload URL. Enter your key above to see the available destinations.',
    more: 'More',
    shareX: 'Open this file with ShareX to make it upload here:',
    aboutKeys:
      'Local clients need no key. Remote clients send it as `Authorization: Bearer …` or `X-Upload-Key`. `?key=…` works too, but URLs often end up in logs.',
    openApi: 'This API as OpenAPI 3.1, with all requests and responses:',
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
}

export type Words = typeof en
