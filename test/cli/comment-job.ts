import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { onTestFinished } from 'vitest'
import { makeDirectory } from '../helpers/directory.ts'
import { makePicture } from '../helpers/picture.ts'
import { type CommentForgeKind, startCommentForge } from '../servers/comment-forge.ts'

/** The folder of a job, and the Git host of its pull request. */
export async function makeJob(kind: CommentForgeKind = 'github') {
  const [cwd, forge] = [await makeDirectory(), await startCommentForge(kind)]
  onTestFinished(() => forge.close())
  /** Writes a file. A number makes an image, which looks different for each from 0 to 255. */
  async function write(name: string, content: number | string | Buffer): Promise<void> {
    const file = join(cwd, name)
    await mkdir(dirname(file), { recursive: true })
    await writeFile(file, typeof content === 'number' ? makePicture(9, [content, 0, 0]) : content)
  }
  return { cwd, forge, write, body: () => forge.comments[0]?.body ?? '' }
}

/** A configuration whose only destination is the folder `stored`. */
export const storedHere = (local: object = {}, settings: object = {}): string => {
  const Default = { directory: 'stored', urlPrefix: 'https://img.example.com', ...local }
  return JSON.stringify({ providers: { local: { Default } }, ...settings })
}

/** Of a server that only takes uploads of keys. */
export const KEYED = {
  auth: {
    loopbackExempt: false,
    keys: [
      { name: 'ci', key: 'k3y-of-the-ci-job' },
      { name: 'other', key: 'k3y-of-somebody-else' },
    ],
  },
  default: 'local/ci',
  providers: { local: { ci: { directory: 'stored', serve: true } } },
}
export const KEY = KEYED.auth.keys[0]?.key ?? ''
