import { readFileSync } from 'node:fs'

/** The configuration of a server in test/fixtures/servers, with these values for its `@names@`. */
export function readConfiguration(name: string, values: Readonly<Record<string, string | number>>): string {
  const text = readFileSync(new URL(`../fixtures/servers/${name}.conf`, import.meta.url), 'utf8')
  return text.replace(/@(\w+)@/g, (whole, key: string) => String(values[key] ?? whole))
}
