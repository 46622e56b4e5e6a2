import { Readable } from 'node:stream'
import { messageOf, systemCode } from '../errors.ts'
import { describeAbsence, runProgram, systemFolder, tailOf } from '../flow/run-program.ts'
import { beginTimeLimit } from '../flow/time-limit.ts'
import { isWsl } from './index.ts'

/** The desktop that a text is copied to or a notification is shown on. */
export interface Desktop {
  /** Environment of the programs: `PATH`, `DISPLAY`, `WAYLAND_DISPLAY`, … */
  readonly env: Readonly<Record<string, string | undefined>>
  readonly platform: NodeJS.Platform
}

/** A program of the desktop. Texts reach it through its standard input, its arguments or its environment, never as code. */
interface DesktopProgram {
  readonly words: readonly [string, ...string[]]
  readonly input?: string | Uint8Array
  readonly env?: Readonly<Record<string, string>>
}

/** Time limit of one program, milliseconds: clipboard programs hang without a display. */
const LIMIT_MS = 3000

/**
 * Copies a text to the clipboard with the first program that can.
 *
 * @throws Error with the reason, as the end of a sentence
 */
export async function copyText(text: string, desktop: Desktop): Promise<void> {
  await runFirst(copyPrograms(text, desktop), desktop)
}

function copyPrograms(text: string, { env, platform }: Desktop): DesktopProgram[] {
  if (platform === 'darwin') return [{ words: ['pbcopy'], input: text, env: { LC_CTYPE: 'UTF-8' } }]
  const windows: DesktopProgram = { words: ['clip.exe'], input: forWindows(text) }
  if (platform === 'win32') return [windows]
  return [
    ...(env['WAYLAND_DISPLAY'] ? [{ words: ['wl-copy'], input: text } as const] : []),
    ...(env['DISPLAY']
      ? ([
          { words: ['xclip', '-selection', 'clipboard', '-in'], input: text },
          { words: ['xsel', '--clipboard', '--input'], input: text },
        ] as const)
      : []),
    ...(isWsl(env) ? [windows] : []),
  ]
}

/** Windows reads bytes as the code page of the console, unless they look like UTF-16. */
function forWindows(text: string): string | Uint8Array {
  return /^[\t\n\r -~]*$/.test(text) ? text : Buffer.from(text, 'utf16le')
}

/**
 * Shows a desktop notification with the first program that can.
 *
 * @throws Error with the reason, as the end of a sentence
 */
export async function notify(title: string, body: string, desktop: Desktop): Promise<void> {
  await runFirst(notifyPrograms(title, body, desktop), desktop)
}

/** Reads its texts from its arguments, so that they are not code. */
const APPLE_SCRIPT =
  'on run texts\ndisplay notification (item 2 of texts) with title (item 1 of texts)\nend run\n'

/** Reads its texts from its environment, so that they are not code. */
const POWER_SHELL = `$manager = [Windows.UI.Notifications.ToastNotificationManager, Windows.UI.Notifications, ContentType = WindowsRuntime]
$toast = $manager::GetTemplateContent([Windows.UI.Notifications.ToastTemplateType]::ToastText02)
$texts = $toast.GetElementsByTagName('text')
[void]$texts.Item(0).AppendChild($toast.CreateTextNode($env:UPLOAD_NOTICE_TITLE))
[void]$texts.Item(1).AppendChild($toast.CreateTextNode($env:UPLOAD_NOTICE_BODY))
$app = '{1AC14E77-02E7-4E5D-B744-2EB1AE5198B7}\\WindowsPowerShell\\v1.0\\powershell.exe'
$manager::CreateToastNotifier($app).Show([Windows.UI.Notifications.ToastNotification]::new($toast))`

function notifyPrograms(title: string, body: string, { env, platform }: Desktop): DesktopProgram[] {
  if (platform === 'darwin') return [{ words: ['osascript', '-', title, body], input: APPLE_SCRIPT }]
  const windows: DesktopProgram = {
    words: ['powershell.exe', '-NoProfile', '-NonInteractive', '-Command', POWER_SHELL],
    env: {
      UPLOAD_NOTICE_TITLE: title,
      UPLOAD_NOTICE_BODY: body,
      WSLENV: `${env['WSLENV'] ?? ''}:UPLOAD_NOTICE_TITLE:UPLOAD_NOTICE_BODY`,
    },
  }
  if (platform === 'win32') return [windows]
  // The body may contain markup (Desktop Notifications Specification, "Markup").
  const escaped = body.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
  return [
    ...(isWsl(env) ? [windows] : []),
    { words: ['notify-send', '--app-name=upload-server', '--', title, escaped] },
  ]
}

async function runFirst(programs: readonly DesktopProgram[], desktop: Desktop): Promise<void> {
  const problems: string[] = []
  for (const program of programs) {
    const problem = await run(program, desktop)
    if (problem === undefined) return
    problems.push(problem)
  }
  throw new Error(problems.join('; ') || 'neither DISPLAY nor WAYLAND_DISPLAY is set')
}

/** @returns why the program failed */
async function run(
  { words, input = '', env = {} }: DesktopProgram,
  desktop: Desktop,
): Promise<string | undefined> {
  const late = () => new Error(`it did not end within ${LIMIT_MS / 1000} s`)
  const limit = beginTimeLimit(LIMIT_MS, new AbortController().signal, late)
  try {
    const { problem, stderr } = await runProgram(words, {
      env: { ...desktop.env, ...env },
      cwd: systemFolder() ?? process.cwd(),
      input: typeof input === 'string' ? input : Readable.from([input]),
      signal: limit.signal,
    })
    return problem && `"${words[0]}" failed: ${problem}${tailOf(stderr, text => text)}`
  } catch (error) {
    return `"${words[0]}" ${describeAbsence(words, systemCode(error)) ?? `failed: ${messageOf(error)}`}`
  } finally {
    limit.end()
  }
}
