import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { lint } from 'markdownlint/promise'

/** Each rule finds what readers would see, or a dead link. The form of the source is not checked. */
const RULES = {
  default: false,
  MD001: true, // a heading that skips a level
  MD022: true, // a heading without blank lines around it
  MD024: { siblings_only: true }, // two headings that get one anchor
  MD034: true, // a bare URL
  MD040: true, // a code block without its language
  MD045: true, // an image without a text
  MD051: true, // a link to a heading that is not on the page
}

const SKIPPED = ['node_modules', '.git', 'build', 'dist', 'coverage']

/** The Markdown files below a folder. */
function listDocuments(folder) {
  return readdirSync(folder, { withFileTypes: true }).flatMap(entry => {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) return SKIPPED.includes(entry.name) ? [] : listDocuments(path)
    return entry.name.endsWith('.md') ? [path] : []
  })
}

const files = listDocuments('.')
const found = Object.entries(await lint({ files, config: RULES }))
for (const [file, problems] of found) {
  for (const { lineNumber, ruleNames, ruleDescription, errorDetail, errorContext } of problems) {
    const details = [ruleDescription, errorDetail, errorContext].filter(part => part).join(': ')
    process.stderr.write(`${file}:${lineNumber} ${ruleNames[0]} ${details}\n`)
  }
}
if (files.length === 0)
  throw new Error('There is no document. Run the command in the folder of the repository.')
if (found.some(([, problems]) => problems.length > 0)) process.exitCode = 1
