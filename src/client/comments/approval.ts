import { createHash } from 'node:crypto'
import { type Review, rowsIn } from '../reports/review.ts'
import type { ForgeClient } from './forge-client.ts'
import type { CommitStatus } from './forges.ts'

/** The label of a pull request that approves all differences. */
const LABEL = 'images-reviewed'

/** Identifies the differences that a box is about: other ones need another look. */
export function digestOf(review: Review): string {
  const rows = rowsIn(review, 'changed', 'new', 'gone', 'renamed').map(({ name, state, before, after }) =>
    JSON.stringify([name, state, before?.sha256, after?.sha256, after?.url]),
  )
  return createHash('sha256').update(rows.sort().join('\n')).digest('hex')
}

/** The box below the images of a comment. */
export function toBox(digest: string, isTicked: boolean): string {
  return `\n- [${isTicked ? 'x' : ' '}] I have looked at these images <!-- reviewed ${digest} -->\n`
}

/** Whether the box of these differences is ticked. Names in a comment can't contain `<`, so they can't forge it. */
export function isTicked(body: string, digest: string): boolean {
  return new RegExp(`^[-*] \\[[xX]\\] .{0,100}<!-- reviewed ${digest} -->`, 'm').test(body)
}

/** The box of an earlier comment, as it is. */
export function boxIn(body: string): string {
  const [box] = /^[-*] \[[ xX]\] .{0,100}<!-- reviewed \w{64} -->$/m.exec(body) ?? []
  return box === undefined ? '' : `\n${box}\n`
}

/** Reads the latest commit of a pull request, and whether it has the label. @throws UploadError `destination_failed` */
export async function readPull(
  { api, pullRequest, ask }: ForgeClient,
  signal: AbortSignal,
): Promise<{ readonly commit: string; readonly isLabelled: boolean }> {
  const reply = await ask('GET', api.pull(pullRequest), undefined, signal)
  const { commit, labels } = api.readPull(reply.json())
  return { commit, isLabelled: labels.includes(LABEL) }
}

/** Sets a status of a commit. @throws UploadError `destination_failed`; CommentForbidden */
export async function setStatus(
  { api, pullRequest, ask }: ForgeClient,
  commit: string,
  status: CommitStatus,
  signal: AbortSignal,
): Promise<void> {
  // GitLab refuses a status that is pending already.
  const accepted = status.state === 'pending' ? [400] : []
  await ask('POST', api.status(pullRequest, commit), api.showStatus(status), signal, accepted)
}
