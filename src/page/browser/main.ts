import { setUpChoices } from './choices.ts'
import { addCopyButtons } from './copy.ts'
import { setUpKey } from './key.ts'
import { refreshRecent, setUpRecent } from './recent.ts'
import * as uploads from './uploads.ts'
import { askServer } from './visitor.ts'
import { element, words } from './words.ts'

addCopyButtons()
setUpChoices()
setUpKey(() => void update(true))
uploads.setUpList()
setUpRecent()
openTarget()
addEventListener('hashchange', openTarget)

/** Files wait for the server's first response: the destination and the size limit depend on the visitor. */
const ready = update()

async function update(isOwnKey = false): Promise<void> {
  const isAdmitted = await askServer(isOwnKey)
  openTarget()
  refreshRecent()
  if (isAdmitted) uploads.retryRejected()
}

/** Opens the section that the URL points into. */
function openTarget(): void {
  const section = document.getElementById(location.hash.slice(1))?.closest('details')
  if (!section || section.open) return
  section.open = true
  document.getElementById(location.hash.slice(1))?.scrollIntoView()
}

async function add(...sources: readonly (File | URL)[]): Promise<void> {
  await ready
  uploads.add(...sources)
}

const files = element<HTMLInputElement>('files')
files.addEventListener('change', () => {
  void add(...(files.files ?? []))
  files.value = ''
})

element('url').addEventListener('submit', event => {
  event.preventDefault()
  const field = element<HTMLInputElement>('url-text')
  if (addUrl(field.value)) field.value = ''
  else uploads.addRejected(field.value, words.badUrl)
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
  void add(...dropped.flatMap(({ file, isFolder }) => (file && !isFolder ? [file] : [])))
  for (const { file, isFolder } of dropped)
    if (isFolder) uploads.addRejected(file?.name ?? '', words.folder, words.folderHelp)
  if (items.length > 0) return true
  const [line = ''] = (data.getData('text/uri-list') || data.getData('text/plain')).trim().split('\n')
  return addUrl(line)
}

function addUrl(text: string): boolean {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (!url || !/^https?:$/.test(url.protocol)) return false
  void add(url)
  return true
}
