/** Starts what is measured, and reads from the system what it costs. */
import { fork, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, open, readdir, readFile, rm, truncate, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const beside = name => fileURLToPath(new URL(name, import.meta.url))
/** Of a processor, per second, in /proc. */
const TICKS = 100

/**
 * @typedef {object} Contender
 * @property {string} name
 * @property {(directory: string, port: number) => Promise<string[]>} prepare makes what it needs; gives its arguments for node
 * @property {boolean} [wholeBody] whether it stores bodies unparsed
 * @property {boolean} [onlyUploads] whether it takes no lists of paths
 * @property {boolean} [sizeOnly] whether of what it stored only the size can be asked for
 */

/** @param {object} destination as in the configuration file @param {string} [root] of the checkout @param {string[]} [flags] */
export function uploadServer(name, destination, root = ROOT, flags = [], more = {}) {
  const [type] = Object.keys(destination)
  const prepare = async (directory, port) => {
    // Apart from what is written, as where it is installed: the server watches the folder of its configuration.
    const config = join(directory, 'config', 'config.json')
    await mkdir(join(directory, 'config'), { recursive: true })
    const files = type === 'local' ? { directory: join(directory, 'files'), serve: true } : {}
    await writeFile(
      config,
      JSON.stringify({
        providers: { [type]: { Default: { ...files, ...destination[type] } } },
        database: { path: join(directory, 'store.db') },
        // More of 1,000 slow clients wait for a durable folder than the default allows.
        limits: { fileSize: '300MB', perDestination: { queued: 1000 } },
        ...more,
      }),
    )
    return [join(root, 'bin/upload-server.js'), '--port', String(port), '--config', config, ...flags]
  }
  return { name, prepare }
}

function floor(name, kind, ...more) {
  const prepare = async (directory, port) => {
    return [beside('floor-server.mjs'), String(port), kind, join(directory, 'files'), ...more]
  }
  return {
    name,
    prepare,
    wholeBody: kind === 'raw' || kind === 'hashed',
    onlyUploads: kind === 'express' || kind === 'recorded' || kind === 'put',
  }
}

/** Those that store in a folder. @type {Record<string, Contender>} */
export const CONTENDERS = {
  ours: uploadServer('upload-server', { local: { durable: false } }),
  synced: uploadServer('the same, durable', { local: { durable: true } }),
  raw: floor('floor raw', 'raw'),
  hashed: floor('floor raw, SHA-256', 'hashed'),
  busboy: floor('floor busboy', 'busboy'),
  express: floor('Express + multer', 'express'),
  recorded: floor('Express + multer, records', 'recorded'),
}

const OTHER = 'other checkout'
/** Another checkout of this program, built. */
export const otherCheckout = root => uploadServer(OTHER, { local: { durable: false } }, root)

/** The stand-in for an S3 server. @returns {Contender} */
const s3Server = latencyMs => ({
  name: `S3 stand-in ${latencyMs}`,
  prepare: async () => [beside('s3-server.mjs'), String(latencyMs)],
})

/** Those that pass files on to S3. @param {string} url of the stand-in @param {string} [other] another checkout */
export function toStandIn(url, other) {
  const s3 = s3Options({ endpoint: url, bucket: 'bench', accessKeyId: 'id', secretAccessKey: 'secret' })
  return {
    ours: { ...uploadServer('upload-server', { s3 }), sizeOnly: true },
    ...(other && { other: { ...uploadServer(OTHER, { s3 }, other), sizeOnly: true } }),
    put: { ...floor('floor PUT', 'put', `${url}/bench`), sizeOnly: true },
  }
}

/** @param {string} target URL,bucket,key,secret of a real one */
export function onS3(target) {
  const [endpoint, bucket, accessKeyId, secretAccessKey] = target.split(',')
  const s3 = s3Options({ endpoint, bucket, accessKeyId, secretAccessKey })
  return uploadServer('upload-server, --s3', { s3 })
}

function s3Options(options) {
  const { endpoint, bucket } = options
  return { ...options, addressingStyle: 'path', region: 'us-east-1', urlPrefix: `${endpoint}/${bucket}` }
}

const canPin = process.platform === 'linux' && spawnSync('taskset', ['--version']).status === 0

/** The server on one core, the client on another, so that neither takes from the other. */
function onCore(core, isPinned, command) {
  return isPinned && canPin ? ['taskset', '-c', String(core), ...command] : command
}

/** Beside the client, on its core. */
export const startS3 = (settings, latencyMs = 0) => startProcess(s3Server(latencyMs), settings, 1)

/**
 * A running server that has answered its first heartbeat.
 *
 * @param {Contender} contender
 * @param {{ directory: string, isPinned: boolean, profile?: string }} settings
 */
export async function startServer(contender, settings) {
  const port = await findPort()
  const began = performance.now()
  const msUntil = work => work.then(() => performance.now() - began)
  const starting = startProcess(contender, settings, 0, port)
  const [server, startMs, listeningMs] = await Promise.all([
    starting,
    msUntil(firstHeartbeat(port, starting)),
    msUntil(starting),
  ])
  /** From the start of the process to its first answer, and to the line of its log that says where it listens. */
  return { ...server, startMs, listeningMs }
}

/** One that is free now. */
async function findPort() {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address()
  await new Promise(resolve => server.close(resolve))
  return port
}

/** Asked for from the start on, as a health check does. */
async function firstHeartbeat(port, starting) {
  let isOver = false
  const end = () => {
    isOver = true
  }
  starting.catch(end)
  while (!isOver) {
    const answer = await fetch(`http://127.0.0.1:${port}/heartbeat`).catch(() => undefined)
    if (answer?.ok) return answer.text()
    if (answer) throw new Error(`The heartbeat was answered with ${answer.status}`)
    await sleep(1)
  }
}

async function startProcess({ name, prepare }, { directory, isPinned, profile }, core, port = 0) {
  const own = join(directory, name.replace(/\W+/g, '-'))
  const files = join(own, 'files')
  await mkdir(files, { recursive: true })
  const flags = profile && name === CONTENDERS.ours.name ? ['--cpu-prof', '--cpu-prof-dir', profile] : []
  const [program, ...args] = onCore(core, isPinned, [
    process.execPath,
    ...flags,
    ...(await prepare(own, port)),
  ])
  // A file: nobody has to read along.
  const output = await open(join(own, 'output'), 'w+')
  const child = spawn(program, args, {
    cwd: own,
    stdio: ['ignore', output.fd, 'inherit'],
    env: { ...process.env, HOME: own, XDG_DATA_HOME: own },
  })
  const url = await readUrl(output, child)
  await output.close()
  const emptied = new Set()
  return {
    url,
    pid: child.pid,
    /** Processor time so far, ms. */
    cpuMs: () => sumOver(child.pid, readCpuMs),
    /** `VmRSS` or `VmHWM`, MB. */
    memory: field => sumOver(child.pid, pid => readMemory(pid, field)),
    /**
     * Gives back what stored files take. They are not removed: for seconds ext4 would search longer for each new file.
     */
    async emptyFiles() {
      for (const entry of await readdir(files, { recursive: true, withFileTypes: true })) {
        const path = join(entry.parentPath, entry.name)
        if (!entry.isFile() || emptied.has(path)) continue
        await truncate(path)
        emptied.add(path)
      }
    },
    async stop() {
      const ended = once(child, 'exit')
      child.kill('SIGTERM')
      await ended
      await rm(own, { recursive: true })
    },
  }
}

/** The address in the first line of the log. */
async function readUrl(output, child) {
  const buffer = Buffer.alloc(1024)
  while (child.exitCode === null) {
    const { bytesRead } = await output.read(buffer, 0, buffer.length, 0)
    const [line, rest] = buffer.toString('utf8', 0, bytesRead).split('\n')
    if (rest !== undefined) return JSON.parse(line).url
    await sleep(1)
  }
  throw new Error(`${child.spawnargs.join(' ')} ended before it listened`)
}

/** Of a process and those that it started. */
async function sumOver(pid, read) {
  const children = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8').catch(() => '')
  const parts = await Promise.all([pid, ...children.split(' ').filter(Boolean)].map(read))
  return parts.reduce((sum, part) => sum + part, 0)
}

/** 0 where there is no /proc. */
async function readCpuMs(pid) {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')
  // The second field, the name of the program, may hold blanks.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return ((Number(fields[11] ?? 0) + Number(fields[12] ?? 0)) / TICKS) * 1000
}

async function readMemory(pid, field) {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '')
  return Number(new RegExp(`^${field}:\\s+(\\d+)`, 'm').exec(status)?.[1]) / 1024
}

/** The process that sends the loads. */
export function startClient(isPinned) {
  const [execPath, ...execArgv] = onCore(1, isPinned, [process.execPath])
  const child = fork(beside('client.mjs'), { execPath, execArgv })
  return {
    /** @returns {Promise<{ done: number, seconds: number, failures: string[], p50: number, p99: number }>} */
    async run(load) {
      child.send(load)
      const [result] = await once(child, 'message')
      return result
    },
    stop: () => child.kill(),
  }
}
