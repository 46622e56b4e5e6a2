/** One end of a channel between two processes: a worker of node:cluster, or `process` in that worker. */
interface Channel {
  send?(message: object, done: (error: Error | null) => void): unknown
  on(event: 'message', listener: (message: Message) => void): unknown
}

type Message =
  | { readonly call: string; readonly args: unknown[]; readonly id?: number }
  | { readonly answer: number; readonly value?: unknown; readonly error?: { name: string; message: string } }

type Arguments<F> = F extends (...args: infer A) => unknown ? A : never
type Result<F> = F extends (...args: never[]) => infer R ? Awaited<R> : never

/** Calls methods of the process at the other end. Arguments and results travel as JSON. */
export interface Calls<Theirs> {
  /** @throws an Error of the same name and message as over there, or the one that `end` was given */
  call<K extends keyof Theirs & string>(name: K, ...args: Arguments<Theirs[K]>): Promise<Result<Theirs[K]>>
  /** The same, but nobody hears what came of it. */
  tell<K extends keyof Theirs & string>(name: K, ...args: Arguments<Theirs[K]>): void
  /** The other end is gone: fails what waits for it. */
  end(reason: Error): void
}

/** @param mine what the other end may call */
export function connect<Theirs, Mine extends object>(channel: Channel, mine: Mine): Calls<Theirs> {
  const waiting = new Map<number, { resolve(value: unknown): void; reject(error: Error): void }>()
  let ended: Error | undefined
  let count = 0
  // Whoever has the channel hears of its end by itself.
  const send = (message: Message) => channel.send?.(message, () => {})

  channel.on('message', async message => {
    if ('answer' in message) {
      const { answer, value, error } = message
      if (error) waiting.get(answer)?.reject(Object.assign(new Error(error.message), { name: error.name }))
      else waiting.get(answer)?.resolve(value)
      waiting.delete(answer)
      return
    }
    const { call, args, id } = message
    try {
      const value = await (mine as Record<string, (...args: unknown[]) => unknown>)[call]?.(...args)
      if (id !== undefined) send({ answer: id, value })
    } catch (error) {
      const { name, message } = error instanceof Error ? error : new Error(String(error))
      if (id !== undefined) send({ answer: id, error: { name, message } })
    }
  })

  return {
    call: (call, ...args) =>
      new Promise((resolve, reject) => {
        if (ended) return reject(ended)
        const id = ++count
        waiting.set(id, { resolve: value => resolve(value as never), reject })
        send({ call, args, id })
      }),
    tell: (call, ...args) => void send({ call, args }),
    end(reason) {
      ended = reason
      for (const { reject } of waiting.values()) reject(reason)
      waiting.clear()
    },
  }
}
