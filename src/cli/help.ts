/** What stands below the help of a command; '' is the program itself. */
export const HELP: Readonly<Record<string, string>> = {
  '': `
Start with:
  upload-server init                         make a configuration
  upload-server                              start the server
  upload-server upload picture.png           upload without one

It ends with 0 when everything was done and with 1 when something was not, which standard error explains.`,
  serve: `
Examples:
  upload-server --port 8080
  upload-server --config /etc/upload-server/config.json --strict-port
  upload-server --workers 2                  on two cores

SIGTERM lets running uploads finish, SIGHUP has the configuration read again.`,
  upload: `
Examples:
  upload-server upload *.png                 one link a line, in their order
  upload-server upload                       the picture in the clipboard
  grim - | upload-server upload - --name screen.png
  upload-server upload a.png --format markdown --picbed s3 --config-name blog
  upload-server upload a.png --server https://img.example.com

It ends with 0 when all were stored, with 1 when not, and with 130 after Ctrl-C.`,
  init: `
Examples:
  upload-server init                         asks
  upload-server init --yes --provider local --set directory=/srv/pictures --set serve=true
  upload-server init --yes --provider github --set repo=me/img --set 'token=\${GITHUB_TOKEN}'`,
  check: `
Examples:
  upload-server check                        every destination
  upload-server check s3/blog                one of them`,
  history: `
Examples:
  upload-server history --days 7 --search screenshot
  upload-server history --json --limit 1000
  upload-server history --prune 365`,
  completion: `
Examples:
  eval "$(upload-server completion bash)"    in ~/.bashrc, and zsh in ~/.zshrc
  upload-server completion fish | source     in ~/.config/fish/completions/upload-server.fish`,
}
