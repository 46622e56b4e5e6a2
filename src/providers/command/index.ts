import { secret, time } from '../../options.ts'
import * as z from '../../packages/zod.ts'
import { defineProvider } from '../contract.ts'
import { openCommands } from './target.ts'
import { findCommandFault } from './words.ts'

const words = () => z.array(z.string().min(1)).min(1)

const config = z.object({
  command: words().describe(
    'Program and arguments that store one file, run without a shell. The program reads the file from standard input, or from the path that replaces "{file}".',
  ),
  url: z
    .string()
    .regex(/^https?:\/\/[^\s]+$/i, 'must be an http or https URL')
    .optional()
    .describe(
      'URL of the stored file, with placeholders such as "{key}". Default: the last line of the program\'s output.',
    ),
  remove: words().optional().describe('Program and arguments that delete the file "{key}".'),
  exists: words()
    .optional()
    .describe(
      'Program and arguments that check whether the file "{key}" exists. Exit code 0: it exists. 1: it does not.',
    ),
  env: z
    .record(z.string().regex(/^[A-Za-z_]\w*$/, 'is not a valid name of an environment variable'), secret())
    .default({})
    .describe('Environment variables for the programs, including secrets.'),
  timeout: time()
    .prefault('2m')
    .describe(
      'Time limit for one run of a program. After it, the program and its child processes are killed.',
    ),
})

/** Any program. It runs as the server's user. */
export const command = defineProvider({
  type: 'command',
  connects: false,
  about: {
    family: 'other',
    what: 'any program, such as rclone (about 70 services), scp or a script',
    testedAgainst: 'rclone, scp and shell scripts',
    choices: [
      {
        label: 'Your own program',
        hint: 'rclone, scp, a script',
        asks: ['command', 'url?'],
      },
    ],
  },
  config,
  validate: ({ command, remove, exists, url }) => findCommandFault({ command, remove, exists }, url),
  open: openCommands,
})
