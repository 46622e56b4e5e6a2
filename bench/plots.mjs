/**
 * Draws the plots of docs/reference/performance.md from bench/results.json, readable on light and dark pages.
 *
 * Usage: node bench/plots.mjs
 */
import { mkdir, writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { readResults } from './results.mjs'

const at = name => fileURLToPath(new URL(name, import.meta.url))
const results = await readResults(at('results.json'))
const folder = at('../docs/images/performance')
const [WIDTH, ROW, LEFT, RIGHT, TOP] = [720, 24, 230, 70, 56]

const STYLE = `<style>
  text { font: 13px system-ui, sans-serif; fill: #1f2328 }
  .title { font-size: 16px; font-weight: 600 }
  .axis { fill: #59636e }
  .bar { fill: #8c959f } .own { fill: #0969da }
  line { stroke: #d1d9e0 } polyline { fill: none; stroke: #0969da; stroke-width: 2 }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f6fc } .axis { fill: #9198a1 } .bar { fill: #656c76 } .own { fill: #4493f8 }
    line { stroke: #3d444d } polyline { stroke: #4493f8 }
  }
</style>`

const escapeXml = text => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
const text = (x, y, what, more = '') => `<text x="${x}" y="${y}" ${more}>${escapeXml(what)}</text>`

async function write(name, title, unit, height, parts) {
  const head = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" role="img">`
  const lines = [head, `<title>${escapeXml(title)}</title>`, STYLE, text(12, 22, title, 'class="title"')]
  lines.push(text(12, 42, unit, 'class="axis"'), ...parts, '</svg>', '')
  await writeFile(`${folder}/${name}.svg`, lines.join('\n'))
}

/** Bars that begin at 0. @param {[string, number][]} rows names and values */
async function bars(name, title, unit, rows, digits) {
  const most = Math.max(...rows.map(([, value]) => value))
  const parts = rows.flatMap(([label, value], index) => {
    const y = TOP + index * ROW
    const width = ((WIDTH - LEFT - RIGHT) * value) / most
    return [
      text(LEFT - 8, y + 15, label, 'text-anchor="end"'),
      `<rect x="${LEFT}" y="${y + 3}" width="${width.toFixed(1)}" height="${ROW - 8}" rx="2" class="${label.startsWith('upload-server') ? 'own' : 'bar'}"/>`,
      text(LEFT + width + 6, y + 15, value.toFixed(digits)),
    ]
  })
  await write(name, title, unit, TOP + rows.length * ROW + 8, parts)
}

/** A line from 0 on. @param {[number, number][]} points */
async function line(name, title, unit, points) {
  const [height, left, bottom] = [260, 60, 220]
  const [mostX, mostY] = [0, 1].map(axis => Math.max(...points.map(point => point[axis])))
  const x = value => left + ((WIDTH - left - 60) * value) / mostX
  const y = value => bottom - ((bottom - TOP) * value) / (mostY * 1.1)
  const marks = [0, 0.5, 1].flatMap(part => [
    `<line x1="${left}" x2="${WIDTH - 60}" y1="${y(mostY * part)}" y2="${y(mostY * part)}"/>`,
    text(left - 8, y(mostY * part) + 4, (mostY * part).toFixed(0), 'text-anchor="end" class="axis"'),
    text(x(mostX * part), bottom + 20, Math.round(mostX * part).toLocaleString('en'), 'text-anchor="middle"'),
  ])
  const path = points.map(([a, b]) => `${x(a).toFixed(1)},${y(b).toFixed(1)}`).join(' ')
  await write(name, title, unit, height, [...marks, `<polyline points="${path}"/>`])
}

await mkdir(folder, { recursive: true })
const { peers, nodes, growth, growthPostgres, memory, pictures } = results
const COST = 'processor time of one upload in ms; less is better'
const costs = (rows, load) => rows.filter(row => row.load === load).map(({ name, cpuMs }) => [name, cpuMs])
for (const [name, load] of [
  ['100-kb', '100 KB, 16 clients'],
  ['5-mb', '5 MB, 4 clients'],
])
  if (peers) await bars(`peers-${name}`, `Upload of ${load}`, COST, costs(peers.rows, load), 2)
if (nodes) {
  const load = '100 KB, 16 clients'
  await bars('nodes', `Versions of Node: ${load}`, COST, costs(nodes.rows, load), 2)
}
const grown = [growth, growthPostgres].flatMap(part => part?.rows.growth ?? [])
if (grown.length > 0)
  await bars(
    'growth',
    'Upload of 100 KB with a large database',
    'processor time of one upload in ms, by entries of the history',
    grown.map(({ store, rows, cpuMs }) => [`${store}, ${rows.toLocaleString('en')}`, cpuMs]),
    2,
  )
if (memory)
  await line('memory', 'Memory during uploads of 10 KB', 'MB, by number of uploads', memory.rows.memory)
if (pictures)
  for (const atOnce of [1, 16]) {
    const rows = pictures.rows.filter(row => row.atOnce === atOnce)
    const images = atOnce === 1 ? '1 image' : `${atOnce} images at once`
    const ms = rows.map(row => [row.name, row.ms / atOnce])
    await bars(`images-${atOnce}-ms`, `Convert ${images}`, 'ms for each image; less is better', ms, 0)
    const mb = rows.map(row => [row.name, row.peakMb])
    await bars(`images-${atOnce}-mb`, `Convert ${images}`, 'peak memory in MB; less is better', mb, 0)
  }
