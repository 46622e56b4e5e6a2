import { Validator } from '@seriousme/openapi-schema-validator'
import { expect, it } from 'vitest'
import { describeApi } from '../../src/routes/openapi.ts'
import { ask } from '../helpers/ask.ts'
import { startApp } from '../helpers/start-app.ts'

interface Document {
  openapi: string
  servers: { url: string }[]
  paths: Record<string, Record<string, object>>
}

async function readDocument(url: string): Promise<Document> {
  const reply = await ask(url, 'GET', '/openapi.json')
  expect(reply.status).toBe(200)
  return JSON.parse(reply.body) as Document
}

it('keeps the published schema of OpenAPI 3.1', async () => {
  const app = await startApp()
  const document = await readDocument(app.url)
  const validator = new Validator()
  expect(await validator.validate(document as unknown as Record<string, unknown>)).toEqual({ valid: true })
  expect(validator.version).toBe('3.1')
  // The schema lets references lead nowhere.
  for (const [, name = ''] of JSON.stringify(document).matchAll(/"#\/components\/schemas\/(\w+)"/g))
    expect(document).toHaveProperty(['components', 'schemas', name])
})

it('names an address that is relative to its own, and is what the source describes', async () => {
  const document = await readDocument((await startApp()).url)
  expect(document.servers).toEqual([{ url: '.' }])
  expect(document).toEqual(describeApi())
})

it('describes routes that are there, and all methods they take', async () => {
  const app = await startApp({ config: { metrics: { enabled: true }, page: { history: true } } })
  for (const [template, operations] of Object.entries((await readDocument(app.url)).paths)) {
    const target = template.replace(/\{\w+\}/g, 'Default')
    for (const method of Object.keys(operations)) {
      const { status } = await ask(app.url, method.toUpperCase(), target)
      expect(status, `${method} ${template}`).not.toBe(405)
      if (!/^\/(?:files|links)\//.test(template)) expect(status, `${method} ${template}`).not.toBe(404)
    }
    if (template.includes('{')) continue
    const { headers } = await ask(app.url, 'PATCH', target)
    const methods = headers.allow?.toLowerCase().split(', ')
    const described = Object.keys(operations).flatMap(name => (name === 'get' ? ['get', 'head'] : [name]))
    expect(new Set([...described, 'options']), template).toEqual(new Set(methods))
  }
})
