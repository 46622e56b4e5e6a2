import { type ChildProcess, spawn } from 'node:child_process'
import { tmpdir } from 'node:os'
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { EMPTY, failure, read } from '../../helpers/clipboard.ts'
import { needs } from '../../helpers/needs.ts'
import { makePicture } from '../../helpers/picture.ts'
import { share } from '../../helpers/share.ts'
import { type Display, startWayland, startX11 } from '../../servers/display.ts'

const PNG = makePicture(16)
const DISPLAYS = [
  ['X11', startX11, ['Xvfb', 'xvfb'], ['xclip', 'xclip']],
  ['Wayland', startWayland, ['sway', 'sway'], ['wl-paste', 'wl-clipboard']],
] as const

describe.each(DISPLAYS)('a real clipboard under %s', (name, startDisplay, ...programs) => {
  beforeEach(context => {
    for (const [program, debianPackage] of programs) needs(context, program, debianPackage)
  })

  /** For tests that put something into the clipboard first. */
  const shareDisplay = share(startDisplay, display => display.stop())

  async function start(): Promise<Display> {
    const display = await startDisplay()
    onTestFinished(() => display.stop())
    return display
  }

  it('gives the bytes of a picture that another program put there', async () => {
    const display = await shareDisplay()
    await display.copy('image/png', PNG)
    expect(await read(display.env)).toEqual({ kind: 'image', name: 'clipboard.png', body: PNG })
  })

  it('gives 12 MB unharmed', async () => {
    const display = await shareDisplay()
    const png = makePicture(12 * 1024 * 1024)
    await display.copy('image/png', png)
    const content = await read(display.env)
    expect(content.kind === 'image' && content.body.equals(png)).toBe(true)
  })

  it('refuses a picture over the limit as too large, and takes one exactly as large', async () => {
    const display = await shareDisplay()
    await display.copy('image/png', PNG)
    expect(await failure(read(display.env, { maxBytes: PNG.length - 1 }))).toEqual({
      code: 'too_large',
      message: `The image in the clipboard is larger than ${PNG.length - 1} bytes (limits.fileSize, or fileSize of the client).`,
    })
    expect(await read(display.env, { maxBytes: PNG.length })).toMatchObject({ kind: 'image' })
  })

  it('says that an empty clipboard is empty', async () => {
    const display = await start()
    const { code, message } = await failure(read(display.env, { timeoutMs: 2000 }))
    expect(code).toBe('source_failed')
    expect(message).toMatch(EMPTY)
  })

  it('takes text for what it names', async () => {
    const display = await shareDisplay()
    await display.copy('UTF8_STRING', '/home/me/å b.png\n')
    expect(await read(display.env)).toEqual({ kind: 'path', path: '/home/me/å b.png' })
    await display.copy('UTF8_STRING', 'https://example.org/a.png?b=c')
    expect(await read(display.env)).toEqual({ kind: 'url', url: new URL('https://example.org/a.png?b=c') })
  })

  it('takes a file copied in a file manager for its path', async () => {
    const display = await shareDisplay()
    await display.copy('text/uri-list', 'file:///home/me/%C3%A5%20b.png\r\n')
    expect(await read(display.env)).toEqual({ kind: 'path', path: '/home/me/å b.png' })
  })

  it('fails within 2 s once the display is gone, and says what to look at', async () => {
    const display = await start()
    await display.stop()
    const { code, message } = await failure(read(display.env, { timeoutMs: 2000 }))
    expect(code).toBe('source_failed')
    expect(message).toContain(name === 'X11' ? 'check that "DISPLAY"' : 'check that "WAYLAND_DISPLAY"')
  })
})

describe('two displays', () => {
  it('falls back from a Wayland compositor that is gone to X11', async context => {
    needs(context, 'Xvfb', 'xvfb')
    needs(context, 'xclip', 'xclip')
    const display = await startX11()
    onTestFinished(() => display.stop())
    await display.copy('image/png', PNG)
    const env = { ...display.env, WAYLAND_DISPLAY: 'wayland-gone', XDG_RUNTIME_DIR: tmpdir() }
    expect(await read(env)).toMatchObject({ kind: 'image', body: PNG })
  })
})

describe('a tool that misbehaves', () => {
  it('an owner that hangs, under a real display, ends in time', async context => {
    needs(context, 'Xvfb', 'xvfb')
    needs(context, 'xclip', 'xclip')
    const display = await startX11()
    onTestFinished(() => display.stop())
    const owner = ownClipboard(display, '/a.png')
    await expect.poll(() => read(display.env).catch(() => undefined)).toBeDefined()
    owner.kill('SIGSTOP')
    const { message } = await failure(read(display.env, { timeoutMs: 300 }))
    expect(message).toContain('did not respond in time')
  })
})

/** An xclip in the foreground, which can be stopped. It is not ready yet. */
function ownClipboard(display: Display, text: string): ChildProcess {
  const args = ['-quiet', '-selection', 'clipboard', '-t', 'UTF8_STRING']
  const owner = spawn('xclip', args, { env: display.env, stdio: ['pipe', 'ignore', 'ignore'] })
  onTestFinished(() => void owner.kill('SIGKILL'))
  owner.stdin.end(text)
  return owner
}
