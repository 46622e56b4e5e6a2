// What make.mjs and review.mjs take their images of.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { chromium } from 'playwright-core'

export const PROGRAM = fileURLToPath(new URL('../../bin/upload-server.js', import.meta.url))

/** Starts the server as it was built, with everything that it keeps in a folder. */
export async function startServer(directory, config) {
  const file = join(directory, 'upload-server.json')
  await writeFile(file, JSON.stringify(config))
  const env = { ...process.env, XDG_DATA_HOME: directory }
  const child = spawn(PROGRAM, ['--config', file], { env, stdio: ['ignore', 'pipe', 'inherit'] })
  for await (const line of createInterface(child.stdout)) {
    const [url] = /http:\/\/[^\s"]+/.exec(line) ?? []
    if (url) return { process: child, url }
  }
  await once(child, 'exit')
  throw new Error('The server did not start.')
}

export const startBrowser = () =>
  chromium.launch({ executablePath: '/usr/bin/chromium-headless-shell', args: ['--no-sandbox'] })
