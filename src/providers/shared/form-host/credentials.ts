import { literal } from './template.ts'

/** Texts by name. */
type Texts = Record<string, string>

const CREDENTIAL = /(authorization|cookie|key|token|secret|passw(or)?d|pwd|userhash|auth|signature)$/i
/** A parameter of a query with its value. */
const PARAMETER = /([?&])([^?=&#]+)=([^&#]*)/g

/** Returns whether a header, field or parameter with that name usually contains a credential. */
export function isCredential(name: string): boolean {
  return CREDENTIAL.test(name)
}

/**
 * The name of a header, field or parameter whose credential stands in the open. It would be shown by `config show`,
 * since only what is in `secrets` is known to be one.
 */
export function findOpenCredential(url: string, texts: readonly (Texts | undefined)[]): string | undefined {
  const parameters = [...url.matchAll(PARAMETER)].map(([, , name = '', value = '']) => [name, value] as const)
  const all = [...parameters, ...texts.flatMap(one => Object.entries(one ?? {}))]
  return all.find(([name, value]) => isCredential(name) && value !== '' && !value.includes('{'))?.[0]
}

/** Makes templates of plain texts, with credentials moved to `secrets`. */
export function hideCredentials(texts: Texts, secrets: Texts): Texts {
  return Object.fromEntries(
    Object.entries(texts).map(([name, value]) => [
      name,
      isCredential(name) && value !== '' ? keep(name, value, secrets) : literal(value),
    ]),
  )
}

/** The same for an address. */
export function hideInUrl(url: string, secrets: Texts): string {
  return literal(url).replace(PARAMETER, (whole, separator: string, name: string, value: string) => {
    if (!isCredential(name) || value === '') return whole
    return `${separator}${name}=${keep(name, decodeURIComponent(value), secrets)}`
  })
}

/** Puts a credential under a free name. */
function keep(name: string, value: string, secrets: Texts): string {
  const plain = name.replace(/[^\w.-]/g, '_')
  let label = plain
  for (let number = 2; Object.hasOwn(secrets, label) && secrets[label] !== value; number++)
    label = `${plain}-${number}`
  secrets[label] = value
  return `{secret:${label}}`
}
