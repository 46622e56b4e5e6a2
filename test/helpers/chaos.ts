/**
 * What finds rare faults only by doing it often: `npm run chaos`, of which CI runs one file for each commit. Elsewhere each
 * kind happens just often enough to be proven.
 */
const IS_CHAOS = process.env['CHAOS'] === 'true'

export function oftenInChaos(once: number, often: number): number {
  return IS_CHAOS ? often : once
}
