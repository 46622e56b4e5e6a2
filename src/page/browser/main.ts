import { addCopyButtons } from './copy.ts'
import { element, words } from './page.ts'
import { refreshRecent, setUpRecent } from './recent.ts'
import { setUpFormats } from './row.ts'
import { add, addRejected, retryRejected, setUpUploads } from './uploads.ts'
import { askServer, setUpVisitor } from './visitor.ts'

addCopyButtons()
setUpVisitor(() => void update(true))
setUpFormats()
setUpUploads()
setUpRecent()

/** Files wait for the server's first response: the destination and the size limit depend on the visitor. */
const ready = update()

async function update(isOwnKey = false): Promise<void> {
  const isAdmitted = await askServer(isOwnKey)
  void refreshRecent()
  if (isAdmitted) retryRejected()
}

async function addWhenReady(sources: readonly (File | URL)[]): Promise<void> {
  await ready
  add(sources)
}

const files = element<HTMLInputElement>('files')
files.addEventListener('change', () => {
  void addWhenReady([...(files.files ?? [])])
  files.value = ''
})

element('url').addEventListener('submit', event => {
  event.preventDefault()
  const field = element<HTMLInputElement>('url-text')
  if (addUrl(field.value)) field.value = ''
  else addRejected(field.value, words.state.badUrl)
})

document.addEventListener('paste', event => {
  if (!event.clipboardData) return
  const isTyping = event.target instanceof HTMLInputElement && !event.target.readOnly
  if (event.clipboardData.files.length === 0 && isTyping) return
  if (addTransfer(event.clipboardData)) event.preventDefault()
})

// Files can be dropped anywhere: the browser would replace the page with a file that misses the drop zone.
const zone = element('drop')
document.addEventListener('dragover', event => {
  event.preventDefault()
  zone.classList.add('over')
})
document.addEventListener('dragleave', event => {
  if (event.relatedTarget === null) zone.classList.remove('over')
})
document.addEventListener('drop', event => {
  event.preventDefault()
  zone.classList.remove('over')
  if (event.dataTransfer) addTransfer(event.dataTransfer)
})

/** Uploads the dropped or pasted files, or else the URL. @returns whether there was one */
function addTransfer(data: DataTransfer): boolean {
  const items = [...data.items].filter(item => item.kind === 'file')
  const dropped = items.map(item => ({
    file: item.getAsFile(),
    isFolder: item.webkitGetAsEntry()?.isDirectory,
  }))
  void addWhenReady(dropped.flatMap(({ file, isFolder }) => (file && !isFolder ? [file] : [])))
  for (const { file, isFolder } of dropped)
    if (isFolder) addRejected(file?.name ?? '', words.state.folder, words.state.folderHelp)
  if (items.length > 0) return true
  const [line = ''] = (data.getData('text/uri-list') || data.getData('text/plain')).trim().split('\n')
  return addUrl(line)
}

function addUrl(text: string): boolean {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (!url || !/^https?:$/.test(url.protocol)) return false
  void addWhenReady([url])
  return true
}
