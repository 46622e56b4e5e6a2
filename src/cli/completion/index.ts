import { defineCommand } from '../define.ts'

export const SHELLS = ['bash', 'zsh', 'fish', 'powershell'] as const

export const completion = defineCommand({
  name: 'completion',
  about: 'print the shell completion script for bash, zsh, fish or PowerShell',
  arg: { spelling: '<shell>', about: 'the shell', choices: SHELLS },
  examples: [
    ['eval "$(upload-server completion bash)"', 'in ~/.bashrc, and zsh in ~/.zshrc'],
    ['upload-server completion fish | source', 'in ~/.config/fish/completions/upload-server.fish'],
    ['upload-server completion powershell | Out-String | Invoke-Expression', 'in $PROFILE'],
  ],
  load: () => import('./run.ts'),
})
