/** What the script says. The server writes it into the document, so that the script knows no language. */
export interface ScriptWords {
  readonly copy: string
  readonly copied: string
  readonly copyFailed: string
  readonly link: string
  readonly open: string
  readonly cancel: string
  readonly again: string
  readonly finish: string
  readonly waiting: string
  readonly sending: string
  /** Speed and time left of a large file. */
  readonly pace: string
  readonly storing: string
  readonly stored: string
  readonly tally: string
  readonly storedName: string
  readonly failedName: string
  readonly pending: string
  readonly pendingHelp: string
  readonly cancelled: string
  readonly limitHelp: string
  readonly keyHelp: string
  readonly unreachable: string
  readonly unreachableHelp: string
  readonly unreadable: string
  readonly unreadableHelp: string
  readonly folder: string
  readonly folderHelp: string
  readonly badUrl: string
  readonly keyAccepted: string
  readonly keyRefused: string
  readonly requestId: string
  readonly historyTitle: string
  readonly historyFailed: string
  /** By the `code` of a failure. */
  readonly failures: Readonly<Record<string, string>>
}
