import { completeProxy } from './address.ts'

export type Environment = Readonly<Record<string, string | undefined>>

/** The environment variables for proxies, by protocol. The first two apply only to HTTP. */
export const VARIABLES = {
  'http:': ['HTTP_PROXY', 'ALL_PROXY'],
  'https:': ['HTTPS_PROXY', 'ALL_PROXY'],
  'tcp:': ['ALL_PROXY'],
}

/** The proxy URLs in the environment. */
export function listProxyVariables(env: Environment): string[] {
  return [...new Set(Object.values(VARIABLES).flat())].flatMap(name => readVariable(env, name)?.value ?? [])
}

/** A variable in either case, the lower one first; undefined when it is empty. */
export function readVariable(env: Environment, name: string): { name: string; value: string } | undefined {
  for (const spelled of [name.toLowerCase(), name]) {
    const value = env[spelled]?.trim()
    if (value) return { name: spelled, value: name === 'NO_PROXY' ? value : completeProxy(value) }
  }
  return undefined
}
