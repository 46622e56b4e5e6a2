import { quote, type Terminal } from './terminal.ts'

/** The shell that a line is for. */
type Shell = Pick<Terminal, 'env' | 'platform'>

interface Named {
  config?: string
  server?: string
  key?: string
}

/** An option as it was given: text, a number, or whether it stands there. */
type Value = string | number | boolean | undefined

/**
 * A command line that does what is missing. It holds no key and no password.
 *
 * @param given further options, by their names on the command line
 */
export function commandFor(
  command: string,
  args: readonly string[],
  { config, server, key, ...given }: Named & Readonly<Record<string, Value>>,
  { env, platform }: Shell,
): string {
  // A key may stand in the address that clients are given.
  const address = server?.replace(/[?#].*/, '')
  const named: Readonly<Record<string, Value>> = {
    config,
    ...given,
    server: address === undefined ? undefined : withoutPassword(address),
  }
  const flags = Object.entries(named).flatMap(([name, value]) => {
    if (value === undefined || value === false) return []
    return value === true ? [`--${name}`] : [`--${name}`, quote(String(value), platform)]
  })
  if (server !== address || (server && key !== env['UPLOAD_SERVER_KEY'])) flags.push('--key KEY')
  const guard = args.some(one => /^-./.test(one)) ? ['--'] : []
  return ['upload-server', command, ...flags, ...guard, ...args.map(one => quote(one, platform))].join(' ')
}

/** What every shell takes as one command, characters. */
const LONGEST_LINE = 8000

/** Says how to do it again, unless that is too long to be run. */
export const sayRepeat = (line: string) => (line.length > LONGEST_LINE ? '' : ` Repeat: ${line}`)

/** A command line that finishes what is stored. */
export function finishFor(ids: readonly string[], { config, server, key }: Named, shell: Shell): string {
  const where = server === undefined ? { config } : { server, key }
  return commandFor('finalize', ids, where, shell)
}

function withoutPassword(address: string): string {
  const url = new URL(address)
  if (url.password === '') return address
  url.password = 'PASSWORD'
  return url.href
}
