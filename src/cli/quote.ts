/** One argument as it is typed into the shell of the system. */
export function quote(text: string, platform: NodeJS.Platform): string {
  if (/^[\w@%+=:,./-]+$/.test(text)) return text
  return platform === 'win32' ? `"${text}"` : `'${text.replace(/'/g, "'\\''")}'`
}
