/** Texts by name. */
type Texts = Record<string, string>

const CREDENTIAL = /(authorization|cookie|key|token|secret|passw(or)?d|pwd|userhash|auth|signature)$/i
/** Matches a parameter of a query with its value. */
export const PARAMETER = /([?&])([^?=&#]+)=([^&#]*)/g

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
