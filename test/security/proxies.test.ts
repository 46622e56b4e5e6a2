import { expect, it } from 'vitest'
import { ask } from '../helpers/ask.ts'
import { startApp, type TestApp } from '../helpers/start-app.ts'

const warnings = (app: TestApp) =>
  app.log.filter(line => line['level'] === 'warn' && /proxy on this machine/.test(String(line['msg'])))

it.each(['X-Forwarded-For', 'X-Real-IP', 'Via', 'Forwarded'])(
  'a proxy on this machine shows itself by %s: the log says once what to set',
  async name => {
    const app = await startApp({ config: { server: { key: 'k3y-0f-the-server' } } })
    await ask(app.url, 'GET', '/')
    expect(warnings(app)).toEqual([])
    for (const path of ['/files/Default/a', '/', '/upload'])
      await ask(app.url, 'GET', path, { headers: { [name]: '203.0.113.9' } })
    expect(warnings(app)).toMatchObject([{ msg: expect.stringContaining('auth.loopbackExempt to false') }])
  },
)

it('a proxy is not spoken of where auth.loopbackExempt is false', async () => {
  const app = await startApp({ config: { auth: { loopbackExempt: false } } })
  await ask(app.url, 'GET', '/', { headers: { 'X-Forwarded-For': '203.0.113.9' } })
  expect(warnings(app)).toEqual([])
})
