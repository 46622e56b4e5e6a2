/** The position of the text after the front matter: lines between `---` and `---` (YAML) or `+++` and `+++` (TOML). */
export function endOfFrontMatter(note: string): number {
  const [opening, fence] = /^\ufeff?(---|\+\+\+)[ \t]*\r?\n/.exec(note) ?? []
  if (opening === undefined) return note.startsWith('\ufeff') ? 1 : 0
  const closing = fence === '---' ? /^(?:---|\.\.\.)[ \t]*\r?$/gm : /^\+\+\+[ \t]*\r?$/gm
  closing.lastIndex = opening.length
  return closing.exec(note) === null ? 0 : closing.lastIndex
}

/** The folder in which Typora looks up paths that start with a slash: `typora-root-url: ../static`. */
export function imageRootOf(note: string): string | undefined {
  const [, value] = /^typora-root-url:(.*)$/m.exec(note.slice(0, endOfFrontMatter(note))) ?? []
  return value?.trim().replace(/^(["'])(.*)\1$/, '$2') || undefined
}
