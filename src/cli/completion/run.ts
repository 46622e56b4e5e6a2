import type { Call } from '../define.ts'
import type { Terminal } from '../terminal.ts'
import type { SHELLS } from './index.ts'

type Shell = (typeof SHELLS)[number]

/** `upload-server completion SHELL`: prints the script for a shell. */
export async function run({ words }: Call, terminal: Terminal): Promise<number> {
  const [shell] = words as [Shell] // The parser accepts no other word.
  for (const line of SCRIPTS[shell].split('\n')) terminal.print(line)
  return 0
}

/** What each shell runs. It asks `upload-server complete` for the words that may come next. */
const SCRIPTS: Record<Shell, string> = {
  bash: `# In ~/.bashrc: eval "$(upload-server completion bash)"
_upload_server() {
  local line
  COMPREPLY=()
  while IFS= read -r line; do
    if [[ $line == :files ]]; then compopt -o default
    elif [[ $line == :folders ]]; then compopt -o dirnames
    else COMPREPLY+=("$(printf '%q' "\${line%%$'\\t'*}")"); fi
  done < <(upload-server complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -F _upload_server upload-server`,
  zsh: `#compdef upload-server
# In ~/.zshrc, behind compinit: eval "$(upload-server completion zsh)"
_upload_server() {
  local line
  local -a found shown
  for line in "\${(@f)$(upload-server complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
    if [[ $line == :files ]]; then _files
    elif [[ $line == :folders ]]; then _files -/
    elif [[ -n $line ]]; then
      found+=("\${line%%$'\\t'*}")
      shown+=("\${line/$'\\t'/  }")
    fi
  done
  (( $#found )) && compadd -l -d shown -a found
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then _upload_server "$@"
else compdef _upload_server upload-server; fi`,
  fish: `# In ~/.config/fish/completions/upload-server.fish: upload-server completion fish | source
function __upload_server_complete
  set -l words (commandline -opc)
  for line in (upload-server complete -- $words[2..-1] "$(commandline -ct)" 2>/dev/null)
    if test "$line" = :files
      __fish_complete_path (commandline -ct)
    else if test "$line" = :folders
      __fish_complete_directories (commandline -ct) ''
    else
      echo $line
    end
  end
end
complete -c upload-server -f -a '(__upload_server_complete)'`,
  // Without a word, PowerShell offers the names of files.
  powershell: `# In $PROFILE: upload-server completion powershell | Out-String | Invoke-Expression
Register-ArgumentCompleter -Native -CommandName upload-server -ScriptBlock {
  param($typed, $line, $cursor)
  $words = @($line.CommandElements | Select-Object -Skip 1 | ForEach-Object { "$_" })
  if ($typed -eq '') { $words += '""' }
  upload-server complete -- @words 2>$null | ForEach-Object {
    $word, $meaning = $_ -split "\`t", 2
    if ($word -notin ':files', ':folders') {
      $shown = if ($meaning) { $meaning } else { $word }
      [System.Management.Automation.CompletionResult]::new($word, $word, 'ParameterValue', $shown)
    }
  }
}`,
}
