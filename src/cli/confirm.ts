import type { Terminal } from './terminal.ts'

/**
 * Asks for confirmation, unless it was given with an option.
 *
 * @param isConfirmed the option --yes
 * @param otherwise returned without a terminal
 */
export async function confirm(
  message: string,
  isConfirmed: boolean | undefined,
  otherwise: boolean,
  terminal: Pick<Terminal, 'canAsk'>,
): Promise<boolean> {
  if (isConfirmed) return true
  if (!terminal.canAsk) return otherwise
  const prompts = await import('@clack/prompts')
  const answer = await prompts.confirm({ message, initialValue: false, output: process.stderr })
  return answer === true
}
