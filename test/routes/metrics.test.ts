import { readFile } from 'node:fs/promises'
import { describe, expect, it } from 'vitest'
import { ask } from '../helpers/ask.ts'
import { eventually } from '../helpers/eventually.ts'
import { list, post, upload } from '../helpers/form.ts'
import { startGate } from '../helpers/gate.ts'
import { startApp, type TestApp, type TestAppOptions } from '../helpers/start-app.ts'

const TOKEN = 't0ken-0f-the-scraper'
const KEY = 'k3y-0f-the-server'
const STRANGER = { 'X-Forwarded-For': '203.0.113.9' }

const startMeasured = (config: Record<string, unknown> = {}): Promise<TestApp> =>
  startApp({ config: { metrics: { enabled: true }, ...config } } satisfies TestAppOptions)

/** Values by name and labels. That the text is what Prometheus reads is checked in test/system/monitoring.test.ts. */
async function scrape(app: TestApp): Promise<Map<string, number>> {
  const { status, body, headers } = await ask(app.url, 'GET', '/metrics')
  expect(status).toBe(200)
  expect(headers['content-type']).toMatch(/^text\/plain; version=0\.0\.4/)
  const samples = [...body.matchAll(/^(\w+(?:\{.*\})?) (\S+)$/gm)]
  return new Map(samples.map(([, name = '', value]) => [name, Number(value)]))
}

describe('/metrics counts', () => {
  it('files, bytes, durations and failures by destination', async () => {
    const app = await startMeasured({
      providers: {
        local: {
          good: { directory: './good', serve: true },
          bad: { directory: './bad', serve: true, keyTemplate: 'same-{filename}', onConflict: 'error' },
          'od"d\\': { directory: './odd', serve: true },
        },
      },
      default: 'local/good',
    })
    expect((await scrape(app)).get('upload_server_files_stored_total{destination="local/good"}')).toBe(0)
    await upload(`${app.url}/upload`, { 'a.txt': 'four', 'b.txt': '12345' })
    await post(`${app.url}/upload`, list('data:,x', '/no/such/file'))
    for (const _ of [1, 2]) await upload(`${app.url}/upload?configName=bad`, { 'a.txt': 'four' })
    await post(`${app.url}/upload?picbed=nowhere`, list('data:,x'))
    const values = await scrape(app)
    expect(
      Object.fromEntries([...values].filter(([name]) => /^upload_server_.*(?:_total|_count)/.test(name))),
    ).toEqual({
      'upload_server_files_stored_total{destination="local/good"}': 3,
      'upload_server_files_stored_total{destination="local/bad"}': 1,
      'upload_server_files_stored_total{destination="local/od\\"d\\\\"}': 0,
      'upload_server_stored_bytes_total{destination="local/good"}': 10,
      'upload_server_stored_bytes_total{destination="local/bad"}': 4,
      'upload_server_stored_bytes_total{destination="local/od\\"d\\\\"}': 0,
      'upload_server_file_failures_total{destination="local/good",code="source_failed"}': 1,
      'upload_server_file_failures_total{destination="local/bad",code="destination_failed"}': 1,
      'upload_server_finalization_failures_total{destination="local/good"}': 0,
      'upload_server_finalization_failures_total{destination="local/bad"}': 0,
      'upload_server_finalization_failures_total{destination="local/od\\"d\\\\"}': 0,
      'upload_server_upload_duration_seconds_count{destination="local/good"}': 2,
      'upload_server_upload_duration_seconds_count{destination="local/bad"}': 2,
      'upload_server_http_responses_total{method="GET",status="200"}': 1,
      'upload_server_http_responses_total{method="POST",status="200"}': 2,
      'upload_server_http_responses_total{method="POST",status="422"}': 1,
      'upload_server_http_responses_total{method="POST",status="502"}': 1,
      'upload_server_http_responses_total{method="POST",status="400"}': 1,
    })
    expect(values.get('upload_server_upload_duration_seconds_sum{destination="local/good"}')).toBeGreaterThan(
      0,
    )
    expect(values.get('process_resident_memory_bytes')).toBeGreaterThan(10_000_000)
  })

  it('health checks, the version, the state of the store, and what came of reading the configuration', async () => {
    const app = await startMeasured()
    await ask(app.url, 'HEAD', '/health')
    const { version } = JSON.parse(await readFile(new URL('../../package.json', import.meta.url), 'utf8'))
    const before = Date.now() / 1000 - 60
    const values = await scrape(app)
    expect(values.get(`upload_server_build_info{version="${version}"}`)).toBe(1)
    expect(values.get('upload_server_http_responses_total{method="HEAD",status="200"}')).toBe(1)
    expect(values.get('upload_server_database_up')).toBe(1)
    expect(values.get('upload_server_config_last_reload_successful')).toBe(1)
    expect(values.get('upload_server_config_last_reload_success_timestamp_seconds')).toBeGreaterThan(before)
    app.server.refused()
    expect((await scrape(app)).get('upload_server_config_last_reload_successful')).toBe(0)
  })

  it('what runs and what waits', async () => {
    const gate = await startGate()
    const app = await startMeasured({
      limits: { perDestination: { concurrent: 1 } },
      providers: { http: { gate: { url: gate.url, resultUrl: 'http://x.example/{key}' } } },
    })
    const uploads = [1, 2, 3].map(() => upload(`${app.url}/upload`, { 'a.txt': 'four' }))
    await eventually(async () => {
      const values = await scrape(app)
      expect(values.get('upload_server_uploads_running')).toBe(1)
      expect(values.get('upload_server_uploads_waiting')).toBe(2)
    })
    gate.open()
    await Promise.all(uploads)
    expect((await scrape(app)).get('upload_server_uploads_running')).toBe(0)
  })

  it('uploads that could not be finished, and requests that a quota refuses before their body is read', async () => {
    const keys = [{ name: 'ci', key: KEY, quota: { files: 1, per: '1d' } }]
    const hooks = [{ name: 'never', command: ['false'] }]
    const app = await startMeasured({ auth: { keys }, finalization: { hooks } })
    for (const status of [424, 429, 429]) {
      const headers = { ...STRANGER, 'X-Upload-Key': KEY }
      expect(await post(`${app.url}/upload`, { ...list('data:,x'), headers })).toMatchObject({ status })
    }
    const values = await scrape(app)
    expect(values.get('upload_server_quota_refusals_total{client="ci"}')).toBe(2)
    expect(values.get('upload_server_finalization_failures_total{destination="local/Default"}')).toBe(1)
    expect(values.get('upload_server_files_stored_total{destination="local/Default"}')).toBe(1)
  })
})

describe('/metrics is given', () => {
  it('to nobody unless it is switched on', async () => {
    const app = await startApp()
    expect(await ask(app.url, 'GET', '/metrics')).toMatchObject({ status: 404 })
  })

  it('to strangers with its own token only', async () => {
    const metrics = { enabled: true, token: TOKEN }
    const app = await startApp({ config: { metrics, server: { key: KEY }, auth: { anonymous: true } } })
    const as = async (headers: Record<string, string>) =>
      (await ask(app.url, 'GET', '/metrics', { headers: { ...STRANGER, ...headers } })).status
    expect(await as({ Authorization: `Bearer ${TOKEN}` })).toBe(200)
    expect(await as({ Authorization: `Bearer ${KEY}` })).toBe(401)
    expect(await as({})).toBe(401)
    const upload = await post(`${app.url}/upload`, {
      ...list('data:,x'),
      headers: { ...STRANGER, Authorization: `Bearer ${TOKEN}` },
    })
    expect(upload.status).toBe(200) // as anybody, not by the token
  })

  it('to programs on this machine without it, and to no page of another site', async () => {
    const app = await startMeasured({ server: { key: KEY } })
    expect((await ask(app.url, 'GET', '/metrics')).status).toBe(200)
    const page = { Origin: 'https://evil.example' }
    const reply = await ask(app.url, 'GET', '/metrics', { headers: page })
    expect(reply.status).toBe(401)
    expect(JSON.parse(reply.body).message).toContain('metrics.token')
    expect((await ask(app.url, 'GET', '/metrics', { headers: { Host: 'evil.example' } })).status).toBe(401)
  })
})
