import { readFile } from 'node:fs/promises'
import { createSecureContext, rootCertificates, type SecureContext } from 'node:tls'
import { decodeText } from '../decode-text.ts'
import { systemCode } from '../errors.ts'
import { Problem } from '../problem.ts'

/**
 * Certificate authorities that a TLS client trusts: the usual ones, and those of the given files. Made once for many connections, since
 * reading the usual certificates takes some 30 ms.
 *
 * @param files PEM certificates by the names of their settings
 * @returns undefined when there is no file: Node's own is as good then
 * @throws Problem
 */
export async function readTrust(
  files: Readonly<Record<string, string | undefined>>,
): Promise<SecureContext | undefined> {
  const own: string[] = []
  for (const [setting, file] of Object.entries(files)) {
    if (file === undefined) continue
    try {
      const text = decodeText(await readFile(file))
      createSecureContext({ ca: text })
      own.push(text)
    } catch (cause) {
      const reason = systemCode(cause) ?? 'it contains no PEM certificate'
      throw new Problem(`"${setting}" cannot be read (${reason})`, { cause })
    }
  }
  return own.length === 0 ? undefined : createSecureContext({ ca: [...rootCertificates, ...own] })
}
