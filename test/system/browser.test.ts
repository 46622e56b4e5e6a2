import { expect, it } from 'vitest'
import { inBrowser } from '../helpers/browser.ts'
import { servePage } from '../helpers/evil-page.ts'
import { download } from '../helpers/form.ts'
import { startApp } from '../helpers/start-app.ts'

it('a page of this machine uploads, and the picture it gets back is shown', async context => {
  await inBrowser(context, async open => {
    const app = await startApp()
    const page = await open()
    await page.goto(`http://localhost:${await servePage()}`)
    const answer = (await page.evaluate(`(async () => {
      const canvas = new OffscreenCanvas(4, 3)
      canvas.getContext('2d').fillRect(0, 0, 4, 3)
      const form = new FormData()
      form.append('file', new File([await canvas.convertToBlob()], '画 "1".png'))
      const response = await fetch('${app.url}/upload', { method: 'POST', body: form })
      return { status: response.status, id: response.headers.get('x-request-id'), ...(await response.json()) }
    })()`)) as {
      status: number
      id: string
      result: string[]
      items: { origin: string; contentType: string }[]
    }
    expect(answer).toMatchObject({ status: 200, items: [{ origin: '画 "1".png', contentType: 'image/png' }] })
    expect(answer.id).toMatch(/./)
    expect((await download(answer.result[0]!)).subarray(1, 4).toString()).toBe('PNG')
    const width = await page.evaluate(`new Promise((resolve, reject) => {
      const image = new Image()
      image.onload = () => resolve(image.naturalWidth)
      image.onerror = reject
      image.src = ${JSON.stringify(answer.result[0])}
    })`)
    expect(width).toBe(4)
  })
})
