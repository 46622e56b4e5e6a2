import { hideSignatures, type Mask } from '../mask.ts'

/** What Node says of a crash would show headers and the environment, and with them secrets. */
export function keepReportsQuiet(mask: Mask): void {
  Object.assign(process.report, { excludeEnv: true })
  process.on('uncaughtException', error => {
    process.stderr.write(`${mask(hideSignatures(explainCrash(error)))}\n`)
    process.exit(1)
  })
}

/** The stacks of an error and of its causes. What else they hold, such as a request, is left out. */
function explainCrash(thrown: unknown): string {
  const stacks: string[] = []
  for (let error = thrown; error !== undefined && stacks.length < 10; ) {
    stacks.push(error instanceof Error ? (error.stack ?? error.message) : String(error))
    error = error instanceof Error ? error.cause : undefined
  }
  return `This is a mistake in upload-server, which ends here. Please report it.\n${stacks.join('\ncaused by ')}`
}
