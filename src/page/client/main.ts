import { setUpChoices, showAllowed } from './choices.ts'
import { addCopyButtons } from './copy.ts'
import { setUpKey } from './key.ts'
import { refreshLately, setUpLately } from './lately.ts'
import { add, addRefused, sendRefused, setUpList } from './uploads.ts'
import { element, words } from './words.ts'

addCopyButtons()
setUpChoices()
setUpKey(() => {
  showAllowed()
  refreshLately()
  sendRefused()
})
setUpList()
setUpLately()

const files = element<HTMLInputElement>('files')
files.addEventListener('change', () => {
  add(...(files.files ?? []))
  files.value = ''
})

element('url').addEventListener('submit', event => {
  event.preventDefault()
  const field = element<HTMLInputElement>('url-text')
  if (addAddress(field.value)) field.value = ''
  else addRefused(field.value, words.badUrl)
})

document.addEventListener('paste', event => {
  if (!event.clipboardData) return
  const isTyping = event.target instanceof HTMLInputElement && !event.target.readOnly
  if (event.clipboardData.files.length === 0 && isTyping) return
  if (take(event.clipboardData)) event.preventDefault()
})

// Anywhere on the page: a file that misses the field would replace the page.
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
  if (event.dataTransfer) take(event.dataTransfer)
})

/** Takes the files, or else the address, that were dropped or pasted. @returns whether there was one */
function take(data: DataTransfer): boolean {
  const items = [...data.items].filter(item => item.kind === 'file')
  const taken = items.map(item => ({
    file: item.getAsFile(),
    isFolder: item.webkitGetAsEntry()?.isDirectory,
  }))
  add(...taken.flatMap(({ file, isFolder }) => (file && !isFolder ? [file] : [])))
  for (const { file, isFolder } of taken)
    if (isFolder) addRefused(file?.name ?? '', words.folder, words.folderHelp)
  if (items.length > 0) return true
  const [line = ''] = (data.getData('text/uri-list') || data.getData('text/plain')).trim().split('\n')
  return addAddress(line)
}

function addAddress(text: string): boolean {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (!url || !/^https?:$/.test(url.protocol)) return false
  add(url)
  return true
}
