import { Console } from 'node:console'
import { fileURLToPath } from 'node:url'
import { hideSignatures, type Mask } from '../mask.ts'
import { PACKAGE_FOLDER } from '../package.ts'

/** Redirects the console to standard error, because standard output is for results and the log, and plugins may write to the console. */
export function redirectConsole(): void {
  globalThis.console = new Console(process.stderr)
}

/** Replaces Node's crash report, which contains headers and the environment, and so secrets. */
export function hideSecretsInCrashes(mask: Mask): void {
  Object.assign(process.report, { excludeEnv: true })
  process.on('uncaughtException', error => {
    process.stderr.write(`${mask(hideSignatures(explainCrash(error)))}\n`)
    process.exit(1)
  })
}

/** The stacks of an error and of its causes. Other members, such as a request, are omitted, because they may contain secrets. */
function explainCrash(thrown: unknown): string {
  const stacks: string[] = []
  for (let error = thrown; error !== undefined && stacks.length < 10; ) {
    stacks.push(error instanceof Error ? (error.stack ?? error.message) : String(error))
    error = error instanceof Error ? error.cause : undefined
  }
  return `${nameCulprit(stacks[0] ?? '')}\n${stacks.join('\ncaused by ')}`
}

/** Names the file that threw, because plugins run in this process and their authors should get the report. */
function nameCulprit(stack: string): string {
  const [first] = /file:\/\/[^\s?)]+/.exec(stack) ?? []
  if (first === undefined || first.startsWith(PACKAGE_FOLDER.href))
    return 'upload-server stopped because of a bug in its own code. Please report it.'
  const file = fileURLToPath(first).replace(/(?::\d+){1,2}$/, '')
  return `upload-server stopped because of a bug in "${file}". If that file is a plugin, report it to the author of the plugin. Otherwise, report it to upload-server.`
}
