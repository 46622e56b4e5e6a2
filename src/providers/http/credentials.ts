import { decodeSafely } from '../../mask.ts'
import { literal } from './template.ts'

/** Texts by name. */
type Texts = Record<string, string>

const CREDENTIAL = /(authorization|cookie|key|token|secret|passw(or)?d|pwd|userhash|auth|signature)$/i
/** Matches a parameter of a query with its value. */
const PARAMETER = /([?&])([^?=&#]+)=([^&#]*)/g

/** Returns whether a header, field or parameter with that name usually contains a credential. */
export function isCredential(name: string): boolean {
  return CREDENTIAL.test(name)
}

/**
 * Returns the name of a header, field or parameter with a literal credential. `config show` would print it, because only
 * values in `secrets` are masked.
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

/** Makes a template of a URL, with the credentials in its query moved to `secrets`. */
export function hideInUrl(url: string, secrets: Texts): string {
  return literal(url).replace(PARAMETER, (whole, separator: string, name: string, value: string) => {
    if (!isCredential(name) || value === '') return whole
    return `${separator}${name}=${keep(name, decodeSafely(value), secrets)}`
  })
}

/** Adds a credential to `secrets` under a free name and returns its placeholder. */
function keep(name: string, value: string, secrets: Texts): string {
  const plain = name.replace(/[^\w.-]/g, '_')
  let label = plain
  for (let number = 2; Object.hasOwn(secrets, label) && secrets[label] !== value; number++)
    label = `${plain}-${number}`
  secrets[label] = value
  return `{secret:${label}}`
}
