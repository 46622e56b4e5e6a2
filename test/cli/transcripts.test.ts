import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { buffer, text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { makeDirectory } from '../helpers/directory.ts'
import { environmentIn } from '../helpers/spawn-server.ts'
import { startApp } from '../helpers/start-app.ts'
import { serve } from '../uploader/sources/servers.ts'
import { runCli } from './run-cli.ts'

/**
 * Each file in transcripts/ has tests as a terminal shows them. A line `# NAME` begins a test; what is before the first one is
 * a script that the shell runs before each test, in a folder of its own. The lines after a command are what it prints: standard
 * output, then standard error behind `! `, then `[CODE]` if the exit code is not 0. `…` is any text within a line, and a line
 * `…` is any number of lines. $DIR is the folder. `$ config JSON` changes settings of its upload-server.json, `$ server [JSON]`
 * starts a server with these settings, whose URL is $SERVER. `$ stub STATUS BODY` starts another program at $STUB, which responds
 * with that to every request.
 *
 * `TRANSCRIPTS=write npx vitest run test/cli/transcripts.test.ts` writes what is printed where it differs. Look at the difference.
 *
 * A command is run by the shell, but `upload-server` runs in this process, also with `NAME=VALUE` before it, or with
 * `TEXT |` for its standard input.
 */
const FOLDER = fileURLToPath(new URL('transcripts/', import.meta.url))

for (const file of readdirSync(FOLDER)) {
  const path = join(FOLDER, file)
  const [setup = '', ...tests] = readFileSync(path, 'utf8').split(/^# /m)
  // The lines are those of a POSIX shell, with its quotes, pipes and `ls`. Windows has none, and no package would change that.
  describe.skipIf(process.platform === 'win32')(file.replace(/\.txt$/, ''), () => {
    it.each(tests.map(test => test.split(/\n([\s\S]*)/) as [string, string]))('%s', async (name, body) => {
      const place = { cwd: await makeDirectory(), server: '', stub: '' }
      await inShell(setup, place)
      const [, ...steps] = body.trimEnd().split(/^\$ /m)
      const seen: string[] = []
      for (const step of steps) {
        const [command = '', ...expected] = step.trimEnd().split('\n')
        const printed = (await type(command, place)).trimEnd().replace(/(?<=.)$/, '\n')
        const isSame = toPattern(expected).test(printed)
        seen.push(`$ ${isSame ? step.trimEnd() : `${command}\n${printed}`.trimEnd()}\n`)
        if (!isSame && !isWriting) expect(printed).toBe(expected.map(line => `${line}\n`).join(''))
      }
      if (!isWriting) return
      const text = readFileSync(path, 'utf8')
      writeFileSync(
        path,
        text.replace(`# ${name}\n${body.trimEnd()}\n`, () => `# ${name}\n${seen.join('')}`),
      )
    })
  })
}

const isWriting = process.env['TRANSCRIPTS'] === 'write'

interface Place {
  readonly cwd: string
  server: string
  stub: string
}

/** @returns what the terminal shows */
async function type(typed: string, place: Place): Promise<string> {
  const { cwd } = place
  const [, word, json = '{}'] = /^(server|config)(?: (.*))?$/.exec(typed) ?? []
  const config = word && JSON.parse(json.replaceAll('$DIR', cwd))
  if (word === 'server') place.server = (await startApp({ config })).url
  if (word === 'config') {
    const file = join(cwd, 'upload-server.json')
    writeFileSync(file, JSON.stringify({ ...JSON.parse(readFileSync(file, 'utf8')), ...config }))
  }
  const [, status, body] = /^stub (\d+) (.*)$/.exec(typed) ?? []
  if (status) {
    const { origin } = await serve((req, res) =>
      req.resume().on('end', () => res.writeHead(Number(status)).end(body)),
    )
    place.stub = origin
  }
  if (word !== undefined || status !== undefined) return ''
  const command = typed
    .replaceAll('$DIR', cwd)
    .replaceAll('$SERVER', place.server)
    .replaceAll('$STUB', place.stub)
  const [, input, variables = '', line] =
    /^(?:(.*) \| )?((?:[A-Z_]+=\S* )*)upload-server (.*)$/.exec(command) ?? []
  const { code, stdout, stderr } =
    line === undefined
      ? await inShell(command, place)
      : await runCli(wordsOf(line), {
          cwd,
          env: Object.fromEntries(wordsOf(variables).map(word => word.split(/=(.*)/s) as [string, string])),
          ...(input !== undefined && { input: (await inShell(input, place)).bytes }),
        })
  const lines = [stdout, stderr.replace(/^(?=.)/gm, '! '), ...(code === 0 ? [] : [`[${code}]\n`])]
  const shown = lines.map(text => text.replace(/(?<=.)(?<!\n)$/, '\n')).join('')
  return Object.entries({ $SERVER: place.server, $STUB: place.stub, $DIR: cwd }).reduce(
    (text, [name, value]) => (value === '' ? text : text.replaceAll(value, () => name)),
    shown,
  )
}

async function inShell(script: string, { cwd }: Place) {
  const child = spawn('sh', ['-c', script], { cwd, env: environmentIn(cwd) })
  child.stdin.end()
  const [bytes, stderr, [code]] = await Promise.all([
    buffer(child.stdout),
    text(child.stderr),
    once(child, 'close') as Promise<[number | null]>,
  ])
  return { code, bytes, stdout: bytes.toString(), stderr }
}

/** The words of a line, as the shell splits and unquotes them. */
const wordsOf = (line: string) =>
  [...line.matchAll(/(?:'[^']*'|"[^"]*"|\\.|[^\s'"\\])+/g)].map(([word]) =>
    word.replace(/'([^']*)'|"([^"]*)"|\\(.)/g, (_, ...parts) =>
      parts.slice(0, 3).find(part => part !== undefined),
    ),
  )

function toPattern(lines: readonly string[]): RegExp {
  const escaped = lines.map(line =>
    line === '…' ? '(?:.*\n)*' : `${line.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&').replaceAll('…', '.*')}\n`,
  )
  return new RegExp(`^${escaped.join('')}$`)
}
