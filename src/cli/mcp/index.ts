import { defineCommand, type Flags } from '../define.ts'
import { config, credentials, folder, serverUrl } from '../flags.ts'

export const flags = {
  config,
  root: {
    about:
      'allowed folder: the agent may upload files below it; may be repeated (default: the working directory)',
    value: folder,
    isRepeatable: true,
  },
  server: { about: 'upload through a running server', value: serverUrl },
  ...credentials,
} as const satisfies Flags

export const mcp = defineCommand({
  name: 'mcp',
  about:
    'let an AI agent upload files: run an MCP server (Model Context Protocol) on standard input and output',
  flags,
  examples: [
    ['upload-server mcp'],
    ['upload-server mcp --root ~/Pictures --root screenshots'],
    ['upload-server mcp --server https://img.example.com'],
    ['claude mcp add upload-server -- upload-server mcp'],
  ],
  notes: `The program that runs the agent starts this command. Files whose names begin with a dot are rejected. Without --config, it
reads the configuration in your configuration folder, and never one in the working directory.`,
  load: () => import('./run.ts'),
})
