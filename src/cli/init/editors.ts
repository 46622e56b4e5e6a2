import { editorsFor } from '../../page/editors.ts'
import { en } from '../../page/words-en.ts'
import { quote } from '../terminal.ts'
import type { Answers } from './ask.ts'

/** The editor settings for a new configuration. @param flags options of `upload-server upload` in a command line */
export function describeEditors(
  { server: { port = 36677, publicUrl, key } = {}, auth }: Answers['settings'],
  flags: string,
  platform: NodeJS.Platform,
): string {
  const editors = editorsFor(
    {
      base: `http://127.0.0.1:${port}`,
      key: auth?.loopbackExempt === false ? 'KEY' : undefined,
      command: `${quote('upload-server', platform)} upload${flags}`,
    },
    en,
  )
  const rows = editors.flatMap(({ name, text, code }) => [
    [name, text.replace(/\*\*|`/g, '')],
    ...code.split('\n').map(line => ['', line]),
  ])
  if (publicUrl !== undefined) {
    const query = key === undefined ? '' : '?key=KEY'
    rows.push(['Remote', `${publicUrl.replace(/\/$/, '')}/upload${query}`])
  }
  return rows.map(([name = '', text]) => `  ${name.padEnd(9)}  ${text}`).join('\n')
}
