/** The texts of the script. The server writes them into the document in its language. */
export interface ScriptWords {
  readonly copy: string
  readonly copied: string
  readonly copyFailed: string
  readonly link: string
  readonly open: string
  readonly cancel: string
  readonly retry: string
  readonly complete: string
  readonly waiting: string
  readonly sending: string
  /** Speed and remaining time of a large file. */
  readonly pace: string
  readonly storing: string
  readonly stored: string
  readonly tally: string
  readonly tallyFailed: string
  /** Follows the tally while the server can't be reached. */
  readonly offline: string
  readonly offlineHelp: string
  readonly expires: string
  readonly storedName: string
  readonly failedName: string
  readonly pending: string
  readonly pendingHelp: string
  readonly cancelled: string
  readonly limitHelp: string
  readonly keyHelp: string
  readonly unreachable: string
  readonly unreachableHelp: string
  /** The title when the response is not the server's, for example a proxy's error page. */
  readonly foreign: string
  readonly foreignHelp: string
  readonly folder: string
  readonly folderHelp: string
  readonly badUrl: string
  readonly keyAccepted: string
  readonly keyRefused: string
  readonly requestId: string
  readonly historyTitle: string
  readonly historyFailed: string
  /** Titles by error code. */
  readonly failures: Readonly<Record<string, string>>
}
