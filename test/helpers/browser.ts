import { type Browser, type BrowserContextOptions, chromium } from 'playwright-core'
import { afterAll, type TestContext } from 'vitest'
import { needs } from './needs.ts'

const ARGUMENTS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  // Names that are not this machine's resolve to it, so that pages of other origins can be had without a network.
  '--host-resolver-rules=MAP * 127.0.0.1',
]

export type Page = Awaited<ReturnType<Browser['newPage']>>

/** A page of any browser, as far as attacks need one. */
export interface Tab {
  goto(url: string): Promise<unknown>
  /** Runs a script in the page, and waits for its promise. */
  evaluate(script: string): Promise<unknown>
  close(): Promise<unknown>
}

let browser: Promise<Browser> | undefined

function launch(context: TestContext): Promise<Browser> {
  needs(context, 'chromium-headless-shell', 'chromium-headless-shell')
  browser ??= chromium.launch({ executablePath: '/usr/bin/chromium-headless-shell', args: ARGUMENTS })
  return browser
}

afterAll(async () => (await browser)?.close())

/** Runs with pages of a fresh profile of headless Chromium, which is started once for each file of tests. */
export async function inBrowser(
  context: TestContext,
  work: (open: () => Promise<Page>) => Promise<void>,
  options?: BrowserContextOptions,
): Promise<void> {
  const profile = await (await launch(context)).newContext(options)
  try {
    await work(() => profile.newPage())
  } finally {
    await profile.close()
  }
}
