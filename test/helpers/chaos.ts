/**
 * What finds rare faults only by doing it often: `npm run chaos`, which CI runs too. Elsewhere each kind happens just often
 * enough to be proven.
 */
const IS_CHAOS = process.env['CHAOS'] === 'true'

export function oftenInChaos(once: number, often: number): number {
  return IS_CHAOS ? often : once
}
