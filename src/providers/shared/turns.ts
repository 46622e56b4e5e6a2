/** Lets work on the same path wait for each other: what one has stored must not be taken for what the other has. */
export function createTurns(): (path: string, work: () => Promise<void>) => Promise<void> {
  const last = new Map<string, Promise<void>>()
  return async (path, work) => {
    const before = last.get(path)
    const mine = before === undefined ? work() : before.catch(() => {}).then(work)
    last.set(path, mine)
    try {
      await mine
    } finally {
      if (last.get(path) === mine) last.delete(path)
    }
  }
}
