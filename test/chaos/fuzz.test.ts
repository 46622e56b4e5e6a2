/** The tests of ../security/fuzz.test.ts, 40 times as often. */

process.env['FUZZ_TIMES'] ??= '40'
await import('../security/fuzz.test.ts')

export {}
