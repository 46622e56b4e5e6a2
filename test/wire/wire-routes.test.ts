import { describe, expect, it } from 'vitest'
import { expectFailure } from '../helpers/expect-answer.ts'
import { sendRaw, sendUpload } from '../helpers/raw-request.ts'
import { shareApp } from '../helpers/start-app.ts'

describe('requests that upload nothing', () => {
  const app = shareApp()

  it.each([
    ['GET /', 200],
    ['HEAD /', 200],
    ['GET /upload', 200],
    ['GET /upload/', 200],
    ['HEAD /upload', 200],
    ['GET /heartbeat', 200],
    ['HEAD /heartbeat', 200],
    ['POST /heartbeat', 200],
    ['GET /health', 200],
    ['HEAD /health', 200],
    ['POST /health', 405],
    ['OPTIONS /anything', 204],
    ['POST /delete', 404],
    ['GET /anything', 404],
    ['POST /anything', 404],
    ['GET /uploads', 404],
    ['GET /Upload', 404],
    ['POST /', 405],
    ['PUT /upload', 400],
    ['DELETE /upload', 405],
    ['PATCH /upload', 405],
    ['PUT /heartbeat', 405],
    ['GET /%ff', 404],
    ['GET /files/x/%', 400],
  ])('%s: %i', async (request, status) => {
    const answer = await sendRaw(app().url, { line: `${request} HTTP/1.1`, headers: ['Connection: close'] })
    expect(answer.status).toBe(status)
    expect(answer.headers.get('access-control-allow-origin')).toBe('*')
    expect(answer.headers.get('x-request-id')).toBeTruthy()
    expect(answer.headers.has('allow')).toBe(status === 405)
    if (status < 400) return
    const body = JSON.parse(answer.body.toString())
    expect(body).toMatchObject({
      success: false,
      message: body.msg,
      requestId: answer.headers.get('x-request-id'),
    })
    expect(body.code).toMatch(/^(not_found|method_not_allowed|invalid_request|no_file)$/)
  })

  it.each(['POST', 'POST /a b c HTTP/1.1', 'POST /upload HTTP/9.9', 'POST /upload HTTP/1.1\r\nno header'])(
    'that are no HTTP get JSON: %j',
    async line => {
      expectFailure(await sendUpload(app().url, { line }), 400, 'invalid_request')
    },
  )
})
