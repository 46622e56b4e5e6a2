/** Prints the results as tables of Markdown. */
import { spread } from './statistics.mjs'

export function printReport(report) {
  const { settings } = report
  console.log(`Node ${report.node}, ${report.cpu}, load of the machine at the start ${report.loadAverage}`)
  console.log(
    `${settings.rounds} rounds of ${settings.ms} ms; medians, ± half the distance of the quartiles.\n`,
  )
  for (const group of report.groups) printGroup(group)
  if (report.processes.length > 0) printProcesses(report.processes, report.processNames)
  if (report.commands.length > 0) printCommands(report.commands)
  for (const note of report.missing) console.log(`Left out: ${note}`)
  for (const failure of failuresOf(report)) console.log(`WRONG: ${failure}`)
}

/** A sentence for every load and contender with wrong answers. */
export function failuresOf({ groups, processes }) {
  return [
    ...groups.flatMap(({ loads, names }) =>
      loads.flatMap(({ name, results }) =>
        Object.entries(results)
          .filter(([, { failures }]) => failures.length > 0)
          .map(([key, { failures }]) => `${name}, ${names[key]}: ${failures.length} × ${failures[0]}`),
      ),
    ),
    ...processes.flatMap(({ name, failures }) => failures.map(failure => `${name}: ${failure}`)),
  ]
}

function printGroup({ title, loads, names }) {
  const keys = Object.keys(names)
  const others = keys.filter(key => key !== 'ours')
  const table = (head, columns, cell) =>
    printTable(
      [`${title}: ${head}`, ...columns.map(key => names[key])],
      loads.map(load => [load.name, ...columns.map(key => cell(load.results, key))]),
    )
  table('answers a second', keys, (results, key) => rate(results[key]))
  table('upload-server has … times as many as', others, (results, key) =>
    ratio(results.ours?.median, results[key]?.median),
  )
  table('CPU ms an answer', keys, (results, key) => results[key]?.cpuMs.toFixed(2) ?? '')
}

function printProcesses(rows, names) {
  const keys = Object.keys(names)
  printTable(
    ['process', ...keys.map(key => names[key]), 'times Express + multer'],
    rows.map(({ name, results }) => [
      name,
      ...keys.map(key => results[key]?.toFixed(0) ?? 'failed'),
      ratio(results.ours, results.express),
    ]),
  )
}

function printCommands(rows) {
  printTable(
    ['command', 'ms', 'times node -e 0'],
    rows.map(({ name, ms, times }) => [name, ms.toFixed(0), times.toFixed(2)]),
  )
}

const rate = result =>
  result
    ? `${result.median.toFixed(result.median < 20 ? 1 : 0)} ±${(spread(result.rates) * 100).toFixed(0)} %`
    : ''
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
