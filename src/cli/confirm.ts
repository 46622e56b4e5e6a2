import type { Terminal } from './terminal.ts'

/**
 * Asks whether to go on, unless that was said already. Where nobody can be asked the answer is `otherwise`.
 *
 * @param isSaid the option --yes
 */
export async function confirm(
  message: string,
  isSaid: boolean | undefined,
  otherwise: boolean,
  terminal: Pick<Terminal, 'canAsk'>,
): Promise<boolean> {
  if (isSaid) return true
  if (!terminal.canAsk) return otherwise
  const prompts = await import('@clack/prompts')
  const answer = await prompts.confirm({ message, initialValue: false, output: process.stderr })
  return answer === true
}
