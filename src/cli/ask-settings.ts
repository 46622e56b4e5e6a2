import { randomBytes } from 'node:crypto'
import * as prompts from '@clack/prompts'
import { configSchema } from '../config/schema.ts'
import type * as z from '../packages/zod.ts'
import type { Answers } from './answers.ts'
import { networkAddresses } from './banner.ts'
import { answered, askText, output } from './questions.ts'

const { server, keyTemplate } = configSchema.shape
const DEFAULTS = server.parse({})
const SERVER = server.unwrap().shape

/** What of the server itself is asked: who comes, where it listens, how others find it, what files are called. */
export async function askSettings(given: Answers['settings']): Promise<Answers['settings']> {
  const { key, auth } =
    given.server?.key === undefined ? await askCallers() : { key: given.server.key, auth: undefined }
  const isOpen = key !== undefined && auth === undefined
  const host = isOpen
    ? await askText(
        'host: Address to listen on. 0.0.0.0 is every address of this machine.',
        '0.0.0.0',
        text => problemOf(SERVER.host, text),
      )
    : DEFAULTS.host
  const port = Number(
    await askText('port: Editors look for 36677 by themselves.', String(DEFAULTS.port), text =>
      /^\d{1,5}$/.test(text) ? problemOf(SERVER.port, Number(text)) : 'A port is a number up to 65535.',
    ),
  )
  const publicUrl =
    key === undefined
      ? ''
      : await askText(
          'publicUrl: Address at which others reach this server; links begin with it. May stay empty.',
          isOpen ? findAddress(port) : '',
          text => (text === '' ? undefined : problemOf(SERVER.publicUrl, text)),
        )
  const template = await askTemplate()
  const changed = {
    ...(host !== DEFAULTS.host && { host }),
    ...(port !== DEFAULTS.port && { port }),
    ...(publicUrl !== '' && { publicUrl }),
    ...(key !== undefined && { key }),
  }
  return {
    ...(Object.keys(changed).length > 0 && { server: changed }),
    ...(auth && { auth }),
    ...(template !== keyTemplate.parse(undefined) && { keyTemplate: template }),
  }
}

function problemOf(schema: z.ZodType, value: unknown): string | undefined {
  return schema.safeParse(value).error?.issues[0]?.message
}

async function askCallers(): Promise<{ key?: string; auth?: { loopbackExempt: boolean } }> {
  const callers = await answered(
    prompts.select({
      message: 'Who uploads through this server?',
      options: [
        { value: 'here', label: 'Programs on this machine', hint: 'they need no key' },
        { value: 'network', label: 'Other machines as well', hint: 'with a key' },
        { value: 'proxy', label: 'Whoever comes by a proxy on this machine', hint: 'with a key' },
      ],
      output,
    }),
  )
  if (callers === 'here') return {}
  const key = randomBytes(24).toString('base64url')
  return callers === 'network' ? { key } : { key, auth: { loopbackExempt: false } }
}

/** The first address by which the network knows this machine. */
function findAddress(port: number): string {
  const [address] = networkAddresses()
  return address === undefined ? '' : `http://${address}:${port}`
}

/** How files are called. A request may ask for a folder, which stands where the template has `{path}`. */
async function askTemplate(): Promise<string> {
  const template = await answered(
    prompts.select({
      message: 'keyTemplate: How are files called at their destination?',
      options: [
        { value: keyTemplate.parse(undefined), label: '2026/11/picture-7a935802.png', hint: 'by month' },
        {
          value: '{path}/{filename}-{sha256-8}{extname}',
          label: 'picture-7a935802.png',
          hint: 'or in the folder that a request asks for',
        },
        {
          value: '{Y}/{m}/{d}/{sha256-32}{extname}',
          label: '2026/11/22/7a935802….png',
          hint: 'without their names',
        },
        { value: '', label: 'By a template of your own' },
      ],
      output,
    }),
  )
  if (template !== '') return template
  return askText(
    'keyTemplate: with {Y} {m} {d} {path} {filename} {sha256-8} {uuid} {extname} and others',
    keyTemplate.parse(undefined),
    text => problemOf(keyTemplate, text),
  )
}
