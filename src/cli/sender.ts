import type { SendOptions } from '../client/sending/send.ts'
import type { Sender } from '../client/sending/sender.ts'
import type { CommonOptions, Terminal } from './terminal.ts'
import type { SenderOptions, SenderRights } from './upload-here.ts'

interface Options extends CommonOptions, SenderOptions, Omit<SendOptions, 'server' | keyof SenderOptions> {
  /** URL of a running server to send through. */
  server?: string
}

/**
 * Runs `work` with a sender for the server that `--server` names, or for the uploader of this process.
 *
 * @param who the rights of an upload in this process; a server derives them from the upload key
 * @returns what `work` returns
 */
export async function withSender<T>(
  options: Options,
  terminal: Terminal,
  who: SenderRights,
  work: (sender: Sender) => Promise<T>,
): Promise<T> {
  const { server } = options
  // Each is loaded only if needed: the database and the configuration take half of the start-up time.
  if (server !== undefined) {
    const { createRemoteSender } = await import('../client/sending/send.ts')
    return work(createRemoteSender({ ...options, server }, terminal))
  }
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
