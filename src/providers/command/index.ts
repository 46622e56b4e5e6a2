import { secret } from '../../options.ts'
import * as z from '../../packages/zod.ts'
import { defineProvider } from '../contract.ts'
import { openCommands } from './target.ts'
import { findFault } from './words.ts'

const words = () => z.array(z.string().min(1)).min(1)

const config = z.object({
  command: words().describe(
    'Program and arguments that store one file, started without a shell. It gets the bytes on standard input, or the path of a file that holds them in the place of "{file}".',
  ),
  url: z
    .string()
    .regex(/^https?:\/\/[^\s]+$/i, 'must be an http or https address')
    .optional()
    .describe(
      'Address of the stored file, with "{key}" in it. Default: the last line that the program prints.',
    ),
  remove: words().optional().describe('Program and arguments that remove "{key}".'),
  exists: words()
    .optional()
    .describe('Program and arguments that look for "{key}": 0 says that it is there, 1 that it is not.'),
  env: z
    .record(z.string().regex(/^[A-Za-z_]\w*$/, 'is no name of a variable'), secret())
    .default({})
    .describe('Variables for the programs, secrets among them.'),
  timeoutMs: z
    .int()
    .min(1)
    .max(2 ** 31 - 1)
    .default(120_000)
    .describe(
      'How long one run may take; then the program is killed with everything it started. Milliseconds.',
    ),
})

/** Any program. It runs as whoever the server runs as. */
export const command = defineProvider({
  type: 'command',
  about: {
    family: 'other',
    what: 'Any program: rclone and its seventy services, scp, a script',
    testedAgainst: 'rclone, scp and shell scripts',
    example: {
      drive: {
        command: ['rclone', 'rcat', 'drive:{key}'],
        url: 'https://img.example.com/{key}',
        remove: ['rclone', 'deletefile', 'drive:{key}'],
        env: { RCLONE_CONFIG_PASS: 'RCLONE_CONFIG_PASS' },
      },
      server: {
        command: ['scp', '-q', '-B', '{file}', 'me@www.example.com:/srv/img/{sha256}'],
        url: 'https://www.example.com/img/{sha256}',
      },
      script: {
        command: ['/usr/local/bin/store-picture'],
        env: { TOKEN: 'PICTURES_TOKEN' },
        timeoutMs: 30_000,
      },
    },
    choices: [
      {
        label: 'A program of yours',
        hint: 'rclone, scp, a script',
        asks: ['command', 'url?'],
      },
    ],
  },
  config,
  validate: ({ command, remove, exists, url }) => findFault({ command, remove, exists }, url),
  open: openCommands,
})
