import { readVersion } from '../package.ts'

/** Runs the command line of this process. Everything but the version is loaded only when it is needed. */
export async function start(argv: readonly string[]): Promise<void> {
  for (const stream of [process.stdout, process.stderr]) stream.on('error', endUnlessReaderLeft)
  const words = argv.slice(2)
  if (words.length === 1 && ['--version', '-V'].includes(words[0] ?? '')) {
    process.stdout.write(`${readVersion()}\n`)
    return
  }
  const { main } = await import('./main.ts')
  await main(words)
}

/** A closed pipe (`upload-server upload … | head -1`) is not an error. Any other write error, such as a full disk, is. */
function endUnlessReaderLeft(error: NodeJS.ErrnoException): void {
  if (error.code === 'EPIPE') return
  process.stderr.write(`Could not write the output: ${error.message}\n`)
  process.exit(1)
}
