/** Text with every secret in it replaced. */
export interface Mask {
  (text: string): string
  /** Adds credentials that were made or read at runtime. They expire, so only the latest are kept. */
  learn?(credentials: readonly string[]): void
}

/** Shorter secrets would match ordinary words. They are never written to the log in the first place. */
const SHORTEST = 4
/** Minimum length of a part of a secret. */
const SHORTEST_PART = 8
/** A short secret is not masked inside a longer word. */
const WORD = /^[a-z]{1,7}$/i
/** Marks the end of a match in Base64. Its last characters depend on what follows, and reveal a part of the secret anyway. */
const END = '\ufdd0'
const ENDS = /\ufdd0[\w+/-]{0,3}={0,2}/g
/** Number of runtime credentials that are kept, because each makes masking slower. */
const MOST_PASSING = 100

/** Masks secrets and their sensitive parts by value, in all encodings that occur. */
export function createMask(secrets: readonly string[]): Mask {
  const spellings = new Set<string>()
  /** Secrets encoded in Base64. */
  const ended = new Set<string>()
  for (const secret of secrets) {
    if (secret.length >= SHORTEST) addSpellings(secret, spellings, ended)
    for (const part of partsOf(secret)) if (part.length >= SHORTEST_PART) addSpellings(part, spellings, ended)
  }
  if (spellings.size === 0) return text => text
  const longestFirst = [...spellings].sort((a, b) => b.length - a.length)
  // An expression of literal alternatives only is fast.
  const inText = longestFirst.filter(spelling => !WORD.test(spelling))
  const pattern = inText.length === 0 ? undefined : new RegExp(inText.map(escapeRegExp).join('|'), 'g')
  const words = longestFirst.filter(spelling => WORD.test(spelling)).join('|')
  const word = words === '' ? undefined : new RegExp(`(?<![a-zA-Z])(?:${words})(?![a-zA-Z])`, 'g')
  const hide = (found: string) => (ended.has(found) ? `[secret]${END}` : '[secret]')
  return text => {
    const hidden = pattern ? text.replace(pattern, hide).replace(ENDS, '') : text
    return word ? hidden.replace(word, '[secret]') : hidden
  }
}

const escapeRegExp = (text: string) => text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&')

/** A mask that can learn, because running requests may use secrets that a reload has replaced. */
export function createGrowingMask(): { readonly mask: Mask; learn(secrets: readonly string[]): void } {
  const known = new Set<string>()
  const passing = new Set<string>()
  let maskKnown = createMask([])
  const learnTo = (all: Set<string>) => (secrets: readonly string[]) => {
    if (secrets.every(secret => all.has(secret))) return
    for (const secret of secrets) all.add(secret)
    for (const oldest of [...passing].slice(0, -MOST_PASSING)) passing.delete(oldest)
    maskKnown = createMask([...known, ...passing])
  }
  const mask: Mask = Object.assign((text: string) => maskKnown(text), { learn: learnTo(passing) })
  return { mask, learn: learnTo(known) }
}

/** The encodings of a secret: plain, JSON, percent-encoded, form, hex, and Base64 as the end of a Basic authorization. */
function addSpellings(secret: string, spellings: Set<string>, ended: Set<string>): void {
  const encoded = encodeURIComponent(secret.toWellFormed())
  const hex = Buffer.from(secret).toString('hex')
  spellings.add(secret)
  const json = JSON.stringify(secret).slice(1, -1)
  spellings.add(json)
  // A secret that was sent as JSON and repeated in a response is escaped twice in the log.
  spellings.add(JSON.stringify(json).slice(1, -1))
  spellings.add(encoded)
  spellings.add(encoded.replace(/%../g, spelled => spelled.toLowerCase()))
  spellings.add(new URLSearchParams([['', secret]]).toString().slice(1))
  spellings.add(hex)
  spellings.add(hex.toUpperCase())
  // The first Base64 characters depend on the text before the secret. The middle occurs at one of three offsets.
  for (const shift of [0, 1, 2]) {
    const inner = Buffer.from(' '.repeat(shift) + secret).toString('base64')
    const known = inner.slice(shift === 0 ? 0 : 4).replace(/.{0,2}={0,2}$/, '')
    if (known.length < 8) continue
    for (const encoded of [known, known.replaceAll('+', '-').replaceAll('/', '_')]) {
      spellings.add(encoded)
      ended.add(encoded)
    }
  }
}

/** Parts that are as sensitive as the whole: the token after `Bearer`, the password in a URL, the lines of a private key. */
function partsOf(secret: string): string[] {
  const [, credential] = /^(?:bearer|basic|token|client-id)\s+(\S+)$/i.exec(secret) ?? []
  const values = [...secret.matchAll(/(?:^|[;?&]\s*)[\w.-]+=([^;&=]+)(?=[;&]|$)/g)]
  const lines = secret.includes('\n') ? secret.split('\n').filter(line => !line.startsWith('---')) : []
  return [
    ...(credential ? [credential] : []),
    ...values.map(([, value = '']) => value).filter(value => !/^[\d:.TZ-]*$/.test(value)),
    ...lines.map(line => line.trim()),
    ...(URL.canParse(secret) && secret.includes('://') ? partsOfAddress(new URL(secret)) : []),
  ]
}

function partsOfAddress({ password, pathname, search, protocol }: URL): string[] {
  // In the webhook URLs of chat services, the path is the secret.
  const path = /^https?:$/.test(protocol) ? [pathname, `${pathname}${search}`] : []
  return [password, decodeSafely(password), ...path].filter(part => part !== '')
}

/** Percent-decodes a text. An invalid encoding is returned unchanged. */
export function decodeSafely(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

const HEADER = /\b((?:proxy-)?authorization|(?:set-)?cookie)(["']?\s*[:=]\s*)("(?:\\.|[^"\\])*"|[^\n<]*)/gi
const SIGNED =
  /\b(signature|sig|credential|security-?token|session-?token)(["']?\s*[:=]\s*["']?)[^\s"'&,;<]+/gi
/** The credentials after the name of a scheme: `UPYUN me:…`, `SharedKey mine:…`, `TOKEN id:…`. */
const SCHEME = /\b(upyun|sharedkey(?:lite)?|token|aws|oss|cos|qbox|qiniu)(\s+)([\w.-]{1,100}):[\w+/=-]{24,}/gi
const BEARER = /\b(basic|bearer)(\s+)((?:\[secret\]|[\w+/=.~-])+)/gi
const DIGEST = /\b(response|cnonce|sha256)(["']?\s*[:=]\s*["']?)[\da-f]{16,128}/gi
const SIGNED_ELEMENT =
  /<(\w{0,40}signature\w{0,40}|stringtosign\w{0,40}|canonicalrequest\w{0,40})>[\s\S]*?(?:<\/\1>|$)/gi

/**
 * Removes from a foreign text what it may repeat of our request: authorizations, cookies, signatures and the queries
 * of URLs. Their values are made for each request, so no mask can know them.
 */
export function hideSignatures(text: string): string {
  return text
    .replace(SIGNED_ELEMENT, ' ')
    .replace(HEADER, '$1$2[hidden]')
    .replace(SIGNED, '$1$2[hidden]')
    .replace(SCHEME, '$1$2$3:[hidden]')
    .replace(BEARER, (all, scheme, gap, token) => (isCredential(token) ? `${scheme}${gap}[hidden]` : all))
    .replace(DIGEST, '$1$2[hidden]')
    .replace(
      /(https?:\/\/)(?:[^\s"'<>/?#@]*@)?([^\s"'<>?]*)(?:\?[^\s"'<>]*)?/gi,
      (_, scheme, rest) => scheme + rest,
    )
}

/** Does not match phrases such as "Basic authentication". */
function isCredential(token: string): boolean {
  const isLogin = /^[\u0020-\uffff]*:/.test(Buffer.from(token, 'base64').toString())
  return isLogin || token.includes('[secret]') || (token.length >= 16 && /\d/.test(token))
}
