/** Prints the results as tables of Markdown. */
import { spread } from './statistics.mjs'

const NAMES = {
  ours: 'upload-server',
  synced: 'synced',
  other: 'other',
  s3: 'S3',
  raw: 'floor raw',
  busboy: 'floor busboy',
  express: 'Express + multer',
}

export function printReport(report) {
  const { loads, starts, peaks } = report
  console.log(
    `Node ${report.node}, ${report.cpu}, ${report.settings.rounds} rounds of ${report.settings.ms} ms\n`,
  )
  if (loads.length > 0) printLoads(loads)
  const rows = [
    startRow('start to first heartbeat, ms', starts, 'startMs'),
    startRow('idle memory, MB', starts, 'idleMb'),
    ...peaks.map(({ name, results }) => [`${name}, MB`, results]),
  ].filter(([, results]) => Object.keys(results).length > 0)
  if (rows.length > 0) printProcess(rows)
}

function printLoads(loads) {
  const keys = Object.keys(NAMES).filter(key => loads.some(load => load.results[key]))
  const head = keys.flatMap(key => (key === 'ours' ? ['upload-server /s', '±'] : [`${NAMES[key]} /s`]))
  const ratios = keys.filter(key => key !== 'ours')
  const rows = loads.map(({ name, results }) => [
    name,
    ...keys.flatMap(key =>
      key === 'ours' ? [rate(results[key]), percent(results[key])] : [rate(results[key])],
    ),
    ...ratios.map(key => ratio(results.ours?.median, results[key]?.median)),
    ...['ours', 'busboy', 'express', 'other'].filter(key => keys.includes(key)).map(key => cpu(results[key])),
  ])
  printTable(
    [
      'load',
      ...head,
      ...ratios.map(key => `of ${NAMES[key]}`),
      ...['ours', 'busboy', 'express', 'other']
        .filter(key => keys.includes(key))
        .map(key => `CPU ms, ${NAMES[key]}`),
    ],
    rows,
  )
  printFailures(loads)
}

function printProcess(rows) {
  const keys = Object.keys(NAMES).filter(key => rows.some(([, results]) => key in results))
  printTable(
    ['', ...keys.map(key => NAMES[key]), 'of Express + multer'],
    rows.map(([name, results]) => [
      name,
      ...keys.map(key => (results[key] === undefined ? 'failed' : results[key].toFixed(0))),
      ratio(results.ours, results.express),
    ]),
  )
}

function startRow(name, starts, member) {
  return [name, Object.fromEntries(Object.entries(starts).map(([key, value]) => [key, value[member]]))]
}

function printFailures(loads) {
  for (const { name, results } of loads) {
    for (const [key, { failures }] of Object.entries(results)) {
      if (failures.length > 0)
        console.log(`WRONG: ${name}, ${NAMES[key]}: ${failures.length} × ${failures[0]}`)
    }
  }
}

const rate = result => (result ? result.median.toFixed(result.median < 20 ? 1 : 0) : '')
const percent = result => `${(spread(result.rates) * 100).toFixed(0)} %`
const cpu = result => (result ? result.cpuMs.toFixed(2) : '')
const ratio = (a, b) => (a === undefined || b === undefined ? '' : (a / b).toFixed(2))

function printTable(head, rows) {
  const widths = head.map((title, column) => Math.max(title.length, ...rows.map(row => row[column].length)))
  const line = cells =>
    `| ${cells.map((cell, i) => (i === 0 ? cell.padEnd(widths[i]) : cell.padStart(widths[i]))).join(' | ')} |`
  console.log(line(head))
  console.log(`|${widths.map((width, i) => '-'.repeat(width + 1) + (i === 0 ? '-' : ':')).join('|')}|`)
  for (const row of rows) console.log(line(row))
  console.log()
}
