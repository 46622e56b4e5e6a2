import { randomBytes } from 'node:crypto'
import * as prompts from '@clack/prompts'
import { configSchema } from '../../config/schema.ts'
import type * as z from '../../packages/zod.ts'
import { networkAddresses } from '../serve/banner.ts'
import type { Answers } from './answers.ts'
import { answerOf, askText, output } from './questions.ts'

const { server, keyTemplate } = configSchema.shape
const DEFAULTS = server.parse({})
const SERVER = server.unwrap().shape

/** Asks for settings of the server: its clients, where it listens, its public URL, and how files are named. */
export async function askSettings(given: Answers['settings']): Promise<Answers['settings']> {
  const { key, auth } =
    given.server?.key === undefined ? await askClients() : { key: given.server.key, auth: undefined }
  const isOpen = key !== undefined && auth === undefined
  const host = isOpen
    ? await askText(
        'host: IP address to listen on. 0.0.0.0 accepts connections on every network interface.',
        '0.0.0.0',
        text => problemOf(SERVER.host, text),
      )
    : DEFAULTS.host
  const port = Number(
    await askText('port: Port to listen on. Editors expect 36677.', String(DEFAULTS.port), text =>
      /^\d{1,5}$/.test(text)
        ? problemOf(SERVER.port, Number(text))
        : 'The port must be a number from 0 to 65535.',
    ),
  )
  const publicUrl =
    key === undefined
      ? ''
      : await askText(
          'publicUrl: URL at which other machines reach this server. Links begin with it. Optional.',
          isOpen ? guessPublicUrl(port) : '',
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

async function askClients(): Promise<{ key?: string; auth?: { loopbackExempt: boolean } }> {
  const clients = await answerOf(
    prompts.select({
      message: 'Who uploads to this server?',
      options: [
        { value: 'here', label: 'Only programs on this machine', hint: 'without a key' },
        { value: 'network', label: 'Other machines too', hint: 'they need an upload key' },
        {
          value: 'proxy',
          label: 'Clients of a reverse proxy on this machine',
          hint: 'they need an upload key',
        },
      ],
      output,
    }),
  )
  if (clients === 'here') return {}
  const key = randomBytes(24).toString('base64url')
  return clients === 'network' ? { key } : { key, auth: { loopbackExempt: false } }
}

/** A URL with the first IPv4 address of this machine in the network, or an empty text. */
function guessPublicUrl(port: number): string {
  const [address] = networkAddresses()
  return address === undefined ? '' : `http://${address}:${port}`
}

/** Asks for the key template. `{path}` in it is the folder that a request names. */
async function askTemplate(): Promise<string> {
  const template = await answerOf(
    prompts.select({
      message: 'keyTemplate: How should stored files be named?',
      options: [
        { value: keyTemplate.parse(undefined), label: '2026/11/picture-7a935802.png', hint: 'by month' },
        {
          value: '{path}/{filename}-{sha256-8}{extname}',
          label: 'picture-7a935802.png',
          hint: 'in the folder that the request names, if any',
        },
        {
          value: '{Y}/{m}/{d}/{sha256-32}{extname}',
          label: '2026/11/22/7a935802….png',
          hint: 'by day, without the original name',
        },
        { value: '', label: 'A template of your own' },
      ],
      output,
    }),
  )
  if (template !== '') return template
  return askText(
    'keyTemplate: The placeholders include {Y} {m} {d} {path} {filename} {sha256-8} {uuid} {extname}.',
    keyTemplate.parse(undefined),
    text => problemOf(keyTemplate, text),
  )
}
