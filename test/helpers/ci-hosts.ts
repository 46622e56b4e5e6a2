import { readFile, writeFile } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { expect } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { makeDirectory } from './directory.ts'
import { type ProgramResult, runProgram } from './run-program.ts'

type Env = Record<string, string>

interface Step {
  readonly id?: string
  readonly name?: string
  readonly uses?: string
  readonly with?: Env
  readonly if?: string
  readonly shell?: string
  readonly run: string
  readonly env?: Env
  readonly 'working-directory'?: string
}

/** What a job has beside its inputs. */
export interface JobOptions {
  readonly cwd: string
  readonly env: Env
  /** Of the job. */
  readonly token?: string
  readonly matrix?: Readonly<Record<string, unknown>> | null
}

/**
 * Runs a composite action as GitHub's runner does: docs.github.com, "Metadata syntax", "Workflow syntax" (shells, contexts)
 * and "Workflow commands" (environment files). Stricter than that: what is not known is an error.
 */
export async function runAction(
  file: string,
  inputs: Env,
  { cwd, env, token = '', matrix = null }: JobOptions,
) {
  const action = parse(await readFile(file, 'utf8'))
  expect(action.runs.using).toBe('composite')
  const scratch = await makeDirectory()
  const steps: Record<string, { outputs: Env }> = {}
  const github: Env = { token, action_path: resolve(dirname(file)) }
  const path = join(scratch, 'path')
  await writeFile(path, '')
  const given = readInputs(action.inputs, inputs, text => evaluate(text, { github }))
  const contexts = () => ({ github, inputs: given, steps, matrix })
  const used: string[] = []
  let printed = ''
  let exitCode: number | null = 0
  for (const [index, step] of (action.runs.steps as Step[]).entries()) {
    const [, condition] = /^((?:inputs|steps)\.[\w.-]+) == 'true'$/.exec(step.if ?? '') ?? []
    expect(condition === undefined, step.if).toBe(step.if === undefined)
    if (condition !== undefined && evaluate(`\${{ ${condition} }}`, contexts()) !== 'true') continue
    if (step.uses !== undefined) {
      // Not run here: the cache of the repository is empty.
      expect(step.uses).toMatch(/^actions\/cache\/(?:restore|save)@[0-9a-f]{40}$/)
      used.push(step.uses)
      for (const text of Object.values(step.with ?? {})) expect(evaluate(text, contexts())).not.toBe('')
      continue
    }
    expect(step.shell).toBe('bash')
    const [script, output] = [join(scratch, `${index}.sh`), join(scratch, `${index}.out`)]
    await writeFile(script, evaluate(step.run, contexts()))
    await writeFile(output, '')
    const own = Object.entries(step.env ?? {}).map(([name, text]) => [
      name,
      evaluate(String(text), contexts()),
    ])
    const result = await runProgram('bash', ['--noprofile', '--norc', '-eo', 'pipefail', script], {
      cwd: resolve(cwd, evaluate(step['working-directory'] ?? '.', contexts())),
      env: {
        ...env,
        GITHUB_ACTION_PATH: resolve(dirname(file)),
        GITHUB_OUTPUT: output,
        GITHUB_PATH: path,
        RUNNER_TEMP: scratch,
        GITHUB_STEP_SUMMARY: join(cwd, 'summary.md'),
        ...Object.fromEntries(own),
      },
    })
    printed += result.stdout + result.stderr
    exitCode = result.exitCode
    if (step.id) steps[step.id] = { outputs: readOutputs(await readFile(output, 'utf8')) }
    if (exitCode !== 0) break
  }
  const shown = Object.entries(action.outputs as Record<string, { value: string }>).map(
    ([name, { value }]) => [name, evaluate(value, contexts())],
  )
  const folders = (await readFile(path, 'utf8')).trim()
  return { exitCode, printed, outputs: Object.fromEntries(shown) as Env, path: folders, used }
}

interface Declared {
  readonly description: string
  readonly required?: boolean
  readonly default?: unknown
  readonly type?: string
}

function readInputs(declared: Record<string, Declared>, given: Env, read: (text: string) => string): Env {
  expect(Object.keys(declared)).toEqual(expect.arrayContaining(Object.keys(given)))
  return Object.fromEntries(
    Object.entries(declared).map(([name, { description, required, default: standard }]) => {
      expect(description, name).toMatch(/\.$/)
      if (given[name] !== undefined) return [name, given[name]]
      expect(required ?? false, `${name} is needed`).toBe(false)
      return [name, read(String(standard))]
    }),
  )
}

/** Expressions that only name something, or are the JSON of a context. */
function evaluate(text: string, contexts: Record<string, unknown>): string {
  const withJson = text.replace(/\$\{\{ toJSON\((\w+)\) \}\}/g, (_, name: string) => {
    expect(contexts[name], name).toBeDefined()
    return JSON.stringify(contexts[name], undefined, 2)
  })
  return withJson.replace(/\$\{\{ ([\w.-]+) \}\}/g, (_, path: string) => {
    const names = path.split('.')
    const found = names.reduce<unknown>(
      (value, name) => (value as Record<string, unknown> | undefined)?.[name],
      names[0] === 'steps' ? { steps: contexts['steps'] } : contexts,
    )
    if (names[0] !== 'steps') expect(found, path).toBeDefined()
    return String(found ?? '')
  })
}

/** `NAME=VALUE`, or `NAME<<END` with lines up to that one. */
function readOutputs(text: string): Env {
  const outputs: Env = {}
  const lines = text.split('\n')
  for (let line = lines.shift(); line !== undefined; line = lines.shift()) {
    if (line === '') continue
    const [, plain, value = ''] = /^([\w-]+)=(.*)$/.exec(line) ?? []
    if (plain !== undefined) {
      outputs[plain] = value
      continue
    }
    const [, name = '', end = ''] = /^([\w-]+)<<(.+)$/.exec(line) ?? []
    expect(end, `no output: ${line}`).not.toBe('')
    outputs[name] = lines.splice(0, lines.indexOf(end)).join('\n')
    lines.shift()
  }
  return outputs
}

/**
 * Runs a component as GitLab does: docs.gitlab.com, "CI/CD YAML syntax" (spec:inputs, variables:expand, artifacts:reports)
 * and what its runner makes of `script` for a shell.
 */
export async function runComponent(file: string, inputs: Record<string, unknown>, { cwd, env }: JobOptions) {
  const [header, body] = parseAllDocuments(await readFile(file, 'utf8')).map(one => one.toJS())
  const declared = header.spec.inputs as Record<string, Declared>
  expect(Object.keys(declared)).toEqual(expect.arrayContaining(Object.keys(inputs)))
  const values = Object.fromEntries(
    Object.entries(declared).map(([name, { description, type = 'string', default: standard }]) => {
      expect(description, name).toMatch(/\.$/)
      const value = inputs[name] ?? standard
      expect(Array.isArray(value) ? 'array' : typeof value, `the input ${name}`).toBe(type)
      return [name, value]
    }),
  )
  const [[name, job] = ['', undefined]] = Object.entries(interpolate(body, values) as Record<string, Job>)
  if (!job) throw new Error('there is no job')
  const variables: Env = {}
  for (const [key, value] of Object.entries(job.variables)) {
    const isLiteral = typeof value === 'object' && value.expand === false
    const text = String(typeof value === 'object' ? value.value : value)
    variables[key] = isLiteral ? text : text.replace(/\$(\w+)/g, (_, known: string) => env[known] ?? '')
  }
  const script = ['set -eo pipefail', ...job.script].join('\n')
  const result: ProgramResult = await runProgram('bash', ['-c', script], {
    cwd,
    env: { ...env, GITLAB_CI: 'true', CI_JOB_NAME: name, ...variables },
  })
  const { dotenv, junit } = job.artifacts.reports
  return {
    name,
    job,
    exitCode: result.exitCode,
    printed: result.stdout + result.stderr,
    dotenv: readDotenv(await readFile(join(cwd, dotenv), 'utf8').catch(() => '')),
    junit: await readFile(join(cwd, junit), 'utf8').catch(() => ''),
  }
}

interface Job {
  readonly stage: string
  readonly needs: readonly string[]
  readonly image: { readonly name: string }
  readonly variables: Record<string, string | boolean | { value: string; expand: boolean }>
  readonly script: readonly string[]
  readonly artifacts: { readonly reports: { readonly dotenv: string; readonly junit: string } }
}

/** In the texts of the YAML, so that no value becomes YAML; one that is a whole text keeps its type. */
function interpolate(node: unknown, values: Record<string, unknown>): unknown {
  const at = (name: string) => {
    expect(Object.keys(values)).toContain(name)
    return values[name]
  }
  if (typeof node === 'string') {
    const [, whole] = /^\$\[\[ inputs\.([\w-]+) \]\]$/.exec(node) ?? []
    if (whole !== undefined) return at(whole)
    return node.replace(/\$\[\[ inputs\.([\w-]+) \]\]/g, (_, name: string) => String(at(name)))
  }
  if (Array.isArray(node)) return node.map(item => interpolate(item, values))
  if (typeof node !== 'object' || node === null) return node
  return Object.fromEntries(
    Object.entries(node).map(([key, value]) => [interpolate(key, values), interpolate(value, values)]),
  )
}

/** Names of letters, digits and `_`, values without line ends. */
function readDotenv(text: string): Env {
  const lines = text.split('\n').filter(line => line !== '')
  return Object.fromEntries(
    lines.map(line => {
      const [, name = '', value = ''] = /^(\w+)=(.*)$/.exec(line) ?? []
      expect(name, line).not.toBe('')
      return [name, value]
    }),
  )
}
