import type { Words } from './words-en.ts'

export interface EditorFacts {
  /** URL of the server, without a trailing slash. */
  readonly base: string
  /** Placeholder for the upload key in URLs. Undefined: local clients need no key. */
  readonly key?: string | undefined
  /** Command line of `upload`, for editors that run a command. */
  readonly command: string
}

export interface Editor {
  readonly id: 'typora' | 'obsidian' | 'vscode'
  readonly name: string
  /** The instruction. Labels of the editor are in asterisks, as in Markdown. */
  readonly text: string
  /** The value to enter. */
  readonly code: string
}

/**
 * Editor settings: the single source for the page, `init` and the documents. The URL for VS Code has `?status=200`, which
 * makes the extension show why an upload failed. The URL for Obsidian does not: it hides the reason in release 4.1.0 of the
 * plugin (docs/start/editors.md lists both in full).
 */
export function editorsFor(
  { base, key, command }: EditorFacts,
  { editors: texts }: Words,
): readonly Editor[] {
  const query = (...parts: string[]) => {
    const all = [...parts, ...(key === undefined ? [] : [`key=${key}`])]
    return all.length > 0 ? `?${all.join('&')}` : ''
  }
  // Local paths only work with a server on the same machine, and by default only for clients without a key.
  const sendsPaths = isLocalUrl(base) && key === undefined
  const vscode = [`"piclist.uploadAPIUrl": "${base}/upload${query('status=200')}"`]
  if (!sendsPaths) vscode.push('"piclist.remoteServerMode": true')
  return [
    {
      id: 'typora',
      name: 'Typora',
      text: sendsPaths && new URL(base).port === '36677' ? texts.typoraPicGo : texts.typora,
      code: command,
    },
    {
      id: 'obsidian',
      name: 'Obsidian',
      text: sendsPaths ? texts.obsidian : texts.obsidianRemote,
      code: `${base}/upload${query()}`,
    },
    { id: 'vscode', name: 'VS Code', text: texts.vscode, code: vscode.join(',\n') },
  ]
}

/** Whether a URL reaches the server only from its own machine. */
export function isLocalUrl(base: string): boolean {
  return /^https?:\/\/(?:localhost|127\.|\[::1\])/.test(base)
}
