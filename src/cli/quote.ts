/** One argument as it is typed into the shell of the system. */
export function quote(text: string, platform: NodeJS.Platform): string {
  if (/^[\w@%+=:,./-]+$/.test(text)) return text
  if (platform === 'win32') return `"${text}"`
  if (!/\p{Cc}/u.test(text)) return `'${text.replace(/'/g, "'\\''")}'`
  // Control characters are written in letters, so that the whole stays one line.
  return `$'${text.replace(/['\\]/g, '\\$&').replace(/\p{Cc}/gu, toEscape)}'`
}

function toEscape(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
}
