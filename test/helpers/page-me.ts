import { expect } from 'vitest'
import type { Me } from '../../src/page/facts.ts'
import { credentialFor, renderGuide } from '../../src/page/guide.ts'
import { en } from '../../src/page/words-en.ts'
import { ask, type Reply } from './ask.ts'

/** What the page learns about a visitor, and the documentation that its script shows them. */
export interface PageMe {
  readonly reply: Reply
  readonly me: Me
  readonly guide: string
}

/** Asks as the script of the page does. */
export async function askMe(url: string, headers: Record<string, string> = {}, query = ''): Promise<PageMe> {
  const reply = await ask(url, 'GET', `/page/me${query}`, { headers })
  expect(reply).toMatchObject({ status: 200, headers: { 'cache-control': 'no-store' } })
  const me: Me = JSON.parse(reply.body).result
  const { base, visitor } = me
  const { signIn, choices } = visitor.admittedBy ? visitor : {}
  const credential = credentialFor(visitor, base)
  const guide = renderGuide({ words: en, base, root: '', credential, signIn, choices }).html
  return { reply, me, guide }
}
