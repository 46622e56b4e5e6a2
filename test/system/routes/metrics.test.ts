import { statfs, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { ask } from '../../helpers/ask.ts'
import { makeDirectory } from '../../helpers/directory.ts'
import { upload } from '../../helpers/form.ts'
import { mountSmall } from '../../helpers/mount-small.ts'
import { startApp, type TestApp, type TestAppOptions } from '../../helpers/start-app.ts'

const startMeasured = (config: Record<string, unknown> = {}): Promise<TestApp> =>
  startApp({ config: { metrics: { enabled: true }, ...config } } satisfies TestAppOptions)

/** Values by name and labels, as they are written; refuses what the text format does not allow. */
async function scrape(app: TestApp): Promise<Map<string, number>> {
  const { status, body, headers } = await ask(app.url, 'GET', '/metrics')
  expect(status).toBe(200)
  expect(headers['content-type']).toMatch(/^text\/plain; version=0\.0\.4/)
  const types = new Map<string, string>()
  const values = new Map<string, number>()
  for (const line of body.split('\n').filter(Boolean)) {
    // As "promtool check metrics" has it.
    if (/^# TYPE \S+_total /.test(line)) expect(line).toMatch(/ counter$/)
    const [, name = '', type = ''] = /^# TYPE ([a-zA-Z_:]\w*) (counter|gauge|histogram)$/.exec(line) ?? []
    if (type) types.set(name, type)
    if (line.startsWith('#')) {
      expect(line).toMatch(/^# (?:TYPE|HELP) \w+ \S/)
      continue
    }
    const sample = /^([a-zA-Z_]\w*)((?:\{(?:\w+="(?:[^"\\\n]|\\.)*",?)+\})?) (\S+)$/.exec(line)
    expect(sample, line).not.toBeNull()
    const [, metric = '', labels = '', value] = sample!
    const family = types.has(metric) ? metric : metric.replace(/_(?:bucket|sum|count)$/, '')
    expect(types.has(family), line).toBe(true)
    if (types.get(family) === 'counter') expect(metric).toMatch(/_total$/)
    expect(values.has(metric + labels), `${line} stands there twice`).toBe(false)
    values.set(metric + labels, value === '+Inf' ? Number.POSITIVE_INFINITY : Number(value))
  }
  return values
}

describe('/metrics counts', () => {
  it('files that are not stored because the database cannot be written', async context => {
    const disk = join(await makeDirectory(), 'disk')
    await mountSmall(context, disk, '2m')
    const app = await startMeasured({ database: { path: join(disk, 'store.db') } })
    const { bavail, bsize } = await statfs(disk)
    // The server may write meanwhile.
    await writeFile(join(disk, 'ballast'), Buffer.alloc(bavail * bsize)).catch(() => {})
    const { status } = await upload(`${app.url}/upload`, { 'a.txt': 'one', 'b.txt': 'two' })
    expect(status).toBe(507)
    const name = 'upload_server_file_failures_total{destination="local/Default",code="insufficient_storage"}'
    expect((await scrape(app)).get(name)).toBe(2)
  })
})
