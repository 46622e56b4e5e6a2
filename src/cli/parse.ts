import { InvalidArgumentError } from 'commander'

export const parseCount = (text: string): number => {
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError('It is a whole number.')
  return Number(text)
}

export const parsePort = (text: string): number => {
  if (!/^\d{1,5}$/.test(text) || Number(text) > 65535)
    throw new InvalidArgumentError('A port is a number from 0 to 65535.')
  return Number(text)
}

export const parseWorkers = (text: string): number | 'auto' => {
  if (text === 'auto') return text
  if (!/^[1-9]\d{0,2}$/.test(text)) throw new InvalidArgumentError('It is a number from 1 on, or "auto".')
  return Number(text)
}

/** `127.0.0.1:36677` will do for `http://127.0.0.1:36677`. */
export const parseServer = (text: string): string => {
  const address = /^https?:\/\//i.test(text) ? text : `http://${text}`
  if (!URL.canParse(address)) throw new InvalidArgumentError('An address is written http://127.0.0.1:36677.')
  return address
}

/** Gathers an option that may be repeated. */
export const collect = (value: string, before: string[]): string[] => [...before, value]
