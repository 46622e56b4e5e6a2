// The script of a report of images (src/client/reports/report-page.ts). Without it, the page shows all images side by side.

const form = document.querySelector('form') as HTMLFormElement
const found = form.querySelector('.found') as HTMLElement
const rows = [...document.querySelectorAll<HTMLElement>('article')]

form.hidden = false
form.addEventListener('submit', event => event.preventDefault())
form.addEventListener('input', update)
for (const images of document.querySelectorAll<HTMLElement>('.images[data-pair]')) alignSizes(images)
document.querySelector('main')?.addEventListener('input', ({ target }) => {
  const slider = target as HTMLInputElement
  slider.parentElement?.style.setProperty('--at', `${slider.value}%`)
})
document.addEventListener('keydown', onKey)
update()

function update(): void {
  const chosen = new FormData(form)
  const text = String(chosen.get('text')).toLowerCase()
  const state = chosen.get('state')
  let shown = 0
  for (const row of rows) {
    const isShown =
      (state === 'all' || row.dataset['state'] === state) &&
      (row.querySelector('h2')?.textContent ?? '').toLowerCase().includes(text)
    row.hidden = !isShown
    if (isShown) shown++
  }
  document.body.dataset['view'] = String(chosen.get('view'))
  found.textContent = shown === rows.length ? '' : `${shown} of ${rows.length} images`
}

/** Shows two images on top of each other in the same scale, also if one of them is narrower. */
function alignSizes(images: HTMLElement): void {
  const pair = [...images.querySelectorAll<HTMLElement>('.before img, .after img')]
  // The attributes, because a question for the layout would take seconds for hundreds of images.
  const widths = pair.map(image => Number(image.getAttribute('width')) || 0)
  const widest = Math.max(...widths)
  if (widths.includes(0)) return
  images.style.setProperty('--widest', `${widest}px`)
  for (const [index, image] of pair.entries())
    image.style.setProperty('--part', `${((widths[index] ?? 0) / widest) * 100}%`)
}

function onKey(event: KeyboardEvent): void {
  const { key, target } = event
  const isTyping = target instanceof HTMLInputElement && target.type === 'search'
  if (isTyping && key === 'Escape') target.blur()
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return
  if (key === '/') {
    event.preventDefault()
    form.querySelector<HTMLInputElement>('[type=search]')?.focus()
  }
  if (key === 'j' || key === 'k') goTo(key === 'j' ? 1 : -1)
  const view = form.querySelectorAll<HTMLInputElement>('[name=view]')[Number(key) - 1]
  if (view) view.click()
}

/** Focuses the next row that is shown, or the previous one. */
function goTo(step: 1 | -1): void {
  const shown = rows.filter(row => !row.hidden)
  const now = shown.findIndex(row => row.contains(document.activeElement))
  const row = shown[now < 0 ? 0 : now + step]
  row?.scrollIntoView({ block: 'start' })
  row?.focus({ preventScroll: true })
}
