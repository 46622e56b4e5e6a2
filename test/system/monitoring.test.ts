import { readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { makeDirectory } from '../helpers/directory.ts'
import { readBlocks } from '../helpers/documents.ts'
import { needs } from '../helpers/needs.ts'
import { runProgram } from '../helpers/run-program.ts'
import { startApp } from '../helpers/start-app.ts'

const EXAMPLES = 'docs/examples/monitoring'
const read = (name: string) => readFileSync(join(EXAMPLES, name), 'utf8')

interface Dashboard {
  readonly panels: readonly {
    readonly title: string
    readonly targets: readonly { readonly expr: string }[]
  }[]
}
const dashboard: Dashboard = JSON.parse(read('grafana-dashboard.json'))

it('Prometheus takes the alerting rules, by the command of the guide', async context => {
  needs(context, 'promtool', 'prometheus')
  const guide = readFileSync('docs/guides/monitor.md', 'utf8')
  const commands = readBlocks(guide).filter(({ kind }) => kind === 'sh by=promtool')
  expect(commands).toHaveLength(1)
  const { exitCode, stdout } = await runProgram('sh', ['-ec', commands[0]?.code ?? ''])
  expect({ exitCode, stdout }).toEqual({ exitCode: 0, stdout: expect.stringContaining('SUCCESS') })
})

it('every alert fires on its fault, and none while the server works', async context => {
  needs(context, 'promtool', 'prometheus')
  const result = await runProgram('promtool', ['test', 'rules', 'test/fixtures/monitoring/alerts-tests.yml'])
  expect(result).toMatchObject({ exitCode: 0, stdout: expect.stringContaining('SUCCESS') })
})

it('every expression of the dashboard is PromQL', async context => {
  needs(context, 'promtool', 'prometheus')
  const rules = dashboard.panels
    .flatMap(({ targets }) => targets)
    .map(({ expr }, index) => ({
      record: `dashboard:expression_${index}`,
      expr: expr.replaceAll('$__rate_interval', '5m').replaceAll(/\$(job|instance)/g, 'a'),
    }))
  const file = join(await makeDirectory(), 'rules.yml') // YAML includes JSON
  await writeFile(file, JSON.stringify({ groups: [{ name: 'dashboard', rules }] }))
  expect(await runProgram('promtool', ['check', 'rules', file])).toMatchObject({ exitCode: 0 })
})

it('Prometheus reads the metrics, also of destinations with odd names', async context => {
  needs(context, 'promtool', 'prometheus')
  const local = { 'od"d\\': { directory: './odd', serve: true } }
  const { url } = await startApp({ config: { metrics: { enabled: true }, providers: { local } } })
  const input = Buffer.from(await (await fetch(`${url}/metrics`)).arrayBuffer())
  expect(await runProgram('promtool', ['check', 'metrics'], { input })).toMatchObject({
    exitCode: 0,
    stderr: '',
  })
})

it('alerts and dashboard name metrics that the server returns', async () => {
  const { url } = await startApp({ config: { metrics: { enabled: true } } })
  const text = await (await fetch(`${url}/metrics`)).text()
  const types = new Map([...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name, type]) => [name, type]))
  const names = [...types].flatMap(([name, type]) => (type === 'histogram' ? [`${name}_bucket`] : [name]))
  const used = [
    read('alerts.yml'),
    ...dashboard.panels.flatMap(({ targets }) => targets.map(one => one.expr)),
  ]
    .join('\n')
    .match(/\b(?:upload_server|process|nodejs)_\w+/g)
  expect(new Set(used).size).toBeGreaterThan(8)
  expect([...new Set(used)].filter(name => !names.includes(name))).toEqual([])
})
