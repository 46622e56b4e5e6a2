import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { readFile, symlink, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, it, type TestContext } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { loadConfig } from '../../src/config/load.ts'
import { makeDirectory } from '../helpers/directory.ts'
import { missing } from '../helpers/needs.ts'

const FOLDER = fileURLToPath(new URL('../../docs/examples/replicas', import.meta.url))
/** The types of Kubernetes' API, made from its OpenAPI document. */
const TYPES = '/opt/kubernetes-types/node_modules/kubernetes-types'
const MODULES: Readonly<Record<string, string>> = {
  v1: 'core/v1',
  'apps/v1': 'apps/v1',
  'policy/v1': 'policy/v1',
  'networking.k8s.io/v1': 'networking/v1',
}

// biome-ignore lint/suspicious/noExplicitAny: whatever YAML holds
type Anything = any

const read = (name: string) => readFile(join(FOLDER, name), 'utf8')
const manifests = async (): Promise<Anything[]> =>
  parseAllDocuments(await read('kubernetes.yaml')).map(one => one.toJS())
const manifest = async (kind: string): Promise<Anything> => (await manifests()).find(one => one.kind === kind)

/** @returns what the compiler says of manifests that are not what Kubernetes takes */
async function check(context: TestContext, all: readonly Anything[]): Promise<string> {
  if (!existsSync(TYPES))
    missing(context, `needs ${TYPES}: npm install --prefix /opt/kubernetes-types kubernetes-types@1.30.0`)
  const directory = await makeDirectory()
  await symlink(resolve(TYPES, '..'), join(directory, 'node_modules'))
  const lines = all.map(
    (one, i) =>
      `export const made${i}: import('kubernetes-types/${MODULES[one.apiVersion]}').${one.kind} = ${JSON.stringify(one)}`,
  )
  await writeFile(join(directory, 'manifests.ts'), lines.join('\n'))
  const compiler = fileURLToPath(import.meta.resolve('typescript/package.json'))
  const args = ['--noEmit', '--strict', '--skipLibCheck', '--module', 'nodenext', 'manifests.ts']
  const run = promisify(execFile)(process.execPath, [join(compiler, '../bin/tsc'), ...args], {
    cwd: directory,
  })
  return run.then(
    () => '',
    error => String(error.stdout),
  )
}

it('the manifests are what the API of Kubernetes takes, and a misspelt field is noticed', async context => {
  const all = await manifests()
  expect(all.map(one => one.kind)).toEqual(
    expect.arrayContaining(['Deployment', 'Service', 'Ingress', 'Secret', 'ConfigMap']),
  )
  expect(await check(context, all)).toBe('')
  const misspelt = await manifest('Deployment')
  misspelt.spec.template.spec.containers[0].securityContext.readOnlyRootFileSystem = true
  expect(await check(context, [misspelt])).toContain('readOnlyRootFileSystem')
})

it('the grace periods are longer than that of the server', async () => {
  const { settings } = await load(await read('config.json'))
  const graceS = settings.shutdown.grace / 1000
  const { spec } = (await manifest('Deployment')).spec.template
  const [container] = spec.containers
  const preStopS = Number(container.lifecycle.preStop.exec.command[1])
  expect(spec.terminationGracePeriodSeconds).toBeGreaterThan(preStopS + graceS)
  // The readiness probe fails before the listener is closed, also if the pod is removed by hand.
  const { periodSeconds, failureThreshold } = container.readinessProbe
  expect(preStopS).toBeGreaterThanOrEqual(periodSeconds * failureThreshold)
  const { services } = parse(await read('compose.yaml'), { merge: true })
  for (const name of ['upload-1', 'upload-2'])
    expect(Number.parseInt(services[name].stop_grace_period, 10)).toBeGreaterThan(graceS)
  const single = parse(await readFile('compose.yaml', 'utf8')).services['upload-server']
  expect(Number.parseInt(single.stop_grace_period, 10)).toBeGreaterThan(graceS)
})

it('all parts have one configuration, which is valid with the variables that they set', async () => {
  const text = await read('config.json')
  const { data } = await manifest('ConfigMap')
  expect(JSON.parse(data['config.json'])).toEqual(JSON.parse(text))
  const names = [...text.matchAll(/\$\{(\w+)\}/g)].map(([, name = '']) => name).sort()
  const [container] = (await manifest('Deployment')).spec.template.spec.containers
  const { stringData } = await manifest('Secret')
  expect([...container.env.map((one: Anything) => one.name), ...Object.keys(stringData)].sort()).toEqual(
    names,
  )
  const { services } = parse(await read('compose.yaml'), { merge: true })
  expect(Object.keys(services['upload-1'].environment).sort()).toEqual(names)
  const { destinations, settings } = await load(text)
  expect(destinations.map(({ type }) => type)).toEqual(['s3'])
  expect(settings.database.driver).toBe('postgres')
})

it.each([
  ['compose.yaml', 'docs/examples/sign-in/nginx.conf'],
  ['docs/examples/replicas/compose.yaml', 'docs/examples/replicas/nginx.conf'],
])('nginx takes the address of clients from a proxy on the machine that runs %s', async (compose, nginx) => {
  const { networks } = parse(await readFile(compose, 'utf8'), { merge: true })
  const [{ subnet }] = networks.default.ipam.config
  // The gateway is the first address.
  expect(await readFile(nginx, 'utf8')).toContain(`set_real_ip_from ${subnet.replace('.0/24', '.1')};`)
})

it('nginx knows the addresses of the servers, and every image has a version', async () => {
  const { services } = parse(await read('compose.yaml'), { merge: true })
  const nginx = await read('nginx.conf')
  for (const name of ['upload-1', 'upload-2', 's3'])
    expect(nginx).toContain(services[name].networks.default.ipv4_address)
  for (const [name, { image }] of Object.entries<Anything>(services))
    if (!name.startsWith('upload-'))
      expect(image).toMatch(/:(?:\d+\.\d+\.\d+|\d+\.\d+|RELEASE\.[\dTZ-]+)(?:-alpine)?$/)
})

async function load(text: string) {
  const cwd = await makeDirectory()
  const file = join(cwd, 'config.json')
  await writeFile(file, text)
  const env = {
    HOME: cwd,
    UPLOAD_SERVER_KEY: 'k3y',
    PUBLIC_URL: 'https://img.example.com',
    DATABASE_URL: 'postgres://upload:x@postgres/upload',
    S3_ENDPOINT: 'https://s3.example.com',
    S3_BUCKET: 'images',
    S3_ACCESS_KEY_ID: 'a',
    S3_SECRET_ACCESS_KEY: 'b',
    S3_PUBLIC_URL: 'https://images.example.com',
  }
  return loadConfig({ cwd, platform: 'linux', env, file })
}
