import { element } from './words.ts'

/** Shows the link as a QR code, to open it on a phone. The encoder is loaded when it is needed. */
export async function showQrCode(url: string, name: string): Promise<void> {
  const { default: qrcode } = await import('qrcode-generator')
  const code = qrcode(0, 'M')
  code.addData(url)
  code.make()
  const dialog = element<HTMLDialogElement>('qr')
  const image = new Image()
  image.alt = url
  image.src = drawn(code.getModuleCount(), (row, column) => code.isDark(row, column))
  // The document is made by uploader.ts, so both elements exist.
  const [title, place] = [dialog.querySelector('bdi'), dialog.querySelector('.code')] as [Element, Element]
  title.textContent = name
  place.replaceChildren(image)
  dialog.showModal()
}

/** The modules as a data URL of an SVG, dark on white in every color scheme, with the quiet zone of 4 modules that readers need. */
function drawn(size: number, isDark: (row: number, column: number) => boolean): string {
  let path = ''
  for (let row = 0; row < size; row++)
    for (let column = 0; column < size; column++) if (isDark(row, column)) path += `M${column} ${row}h1v1h-1z`
  const side = size + 8
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="-4 -4 ${side} ${side}" shape-rendering="crispEdges"><path fill="#fff" d="M-4-4h${side}v${side}h-${side}z"/><path d="${path}"/></svg>`
  return `data:image/svg+xml,${encodeURIComponent(svg)}`
}
