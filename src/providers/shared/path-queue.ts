/** Runs work on the same path one after the other, so that one upload is not mistaken for another. */
export function createPathQueue(): (path: string, work: () => Promise<void>) => Promise<void> {
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
