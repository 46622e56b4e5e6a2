import { createRemoteSender, type SendOptions } from '../client/sending/send.ts'
import type { Sender } from '../client/sending/sender.ts'
import type { CommonOptions, Terminal } from './terminal.ts'
import type { Where, Who } from './upload-here.ts'

interface Options extends CommonOptions, Where, Omit<SendOptions, 'server' | keyof Where> {
  /** URL of a running server to send through. */
  server?: string
}

/**
 * Has a command upload through the server that `--server` names, or in this process.
 *
 * @param who for whom it is done in this process; a server decides that by the upload key
 * @returns what `work` returns
 */
export async function withSender<T>(
  options: Options,
  terminal: Terminal,
  who: Who,
  work: (sender: Sender) => Promise<T>,
): Promise<T> {
  const { server } = options
  if (server !== undefined) return work(createRemoteSender({ ...options, server }, terminal))
  // It brings the store and the configuration along, which is half of the start.
  const [{ openForCommand }, { createSenderHere }] = await Promise.all([
    import('./open.ts'),
    import('./upload-here.ts'),
  ])
  const opened = await openForCommand(options, terminal)
  try {
    return await work(createSenderHere(options, opened, terminal, who))
  } finally {
    await opened.uploader.close()
  }
}
