import * as z from '../packages/zod.ts'

const UNITS: Record<string, number> = { '': 1, K: 1024, M: 1024 ** 2, G: 1024 ** 3 }

const SIZE = /^(\d+(?:\.\d+)?)\s*([KMG]?)i?B?$/i

/** A number of bytes, or a string such as `"100MB"`; KB is 1024 bytes. At least one byte. */
export function size() {
  const error =
    'must be a number of bytes or a string such as "100MB", "512KB" or "2GB", and more than nothing'
  return z
    .union([z.number().int(error), z.string()], { error })
    .refine(value => toBytes(value) >= 1, error)
    .transform(toBytes)
}

function toBytes(value: number | string): number {
  if (typeof value === 'number') return value
  const [, digits, unit = ''] = SIZE.exec(value.trim()) ?? []
  return Math.round(Number(digits) * (UNITS[unit.toUpperCase()] ?? 1))
}
