import type { Answers } from './answers.ts'
import { quote } from './terminal.ts'

/** What to type into editors, given the settings of a server and how `upload` is called. */
export function describeEditors(
  { server: { port = 36677, publicUrl, key } = {}, auth }: Answers['settings'],
  flags: string,
  platform: NodeJS.Platform,
): string {
  const query = (isKeyed: boolean, ...more: string[]) => {
    const all = [...more, ...(isKeyed ? ['key=KEY'] : [])]
    return all.length > 0 ? `?${all.join('&')}` : ''
  }
  const isKeyed = auth?.loopbackExempt === false
  const here = `http://127.0.0.1:${port}/upload`
  const typora =
    port === 36677 && !isKeyed
      ? 'PicGo(app)'
      : `Custom Command: ${quote('upload-server', platform)} upload${flags}`
  const rows = [
    ['Typora', `Preferences, Image, Image Uploader: ${typora}`],
    ['Obsidian', `plugin Image auto upload, PicGo(app): ${here}${query(isKeyed, 'status=200')}`],
    ['VS Code', `extension PicList or vs-picgo: ${here}${query(isKeyed)}`],
    ...(publicUrl === undefined
      ? []
      : [['Elsewhere', `${publicUrl.replace(/\/$/, '')}/upload${query(key !== undefined, 'status=200')}`]]),
  ]
  return rows.map(([name = '', text]) => `  ${name.padEnd(9)}  ${text}`).join('\n')
}
