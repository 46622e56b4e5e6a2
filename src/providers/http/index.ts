import { isDeepStrictEqual } from 'node:util'
import { messageOf } from '../../errors.ts'
import { defineProvider } from '../contract.ts'
import { sendForm } from '../shared/form-host.ts'
import { findOpenCredential } from './credentials.ts'
import { compileHost } from './description.ts'
import { config, type HttpOptions } from './options.ts'
import { picgo } from './picgo.ts'
import { readSxcu } from './sxcu.ts'

/** Any host that accepts a file in one HTTP request and returns its URL. */
export const http = defineProvider({
  type: 'http',
  about: {
    family: 'other',
    what: 'any HTTP upload API; reads ShareX `.sxcu` files',
    testedAgainst: 'httpbin and PHP',
    choices: [
      {
        label: 'Any other image host',
        hint: 'configured by a ShareX .sxcu file or by options',
        asks: ['sxcu?', 'url?'],
      },
    ],
  },
  config,
  validate,
  open({ sxcu, ...options }, { http, learn }) {
    const description = sxcu === undefined ? options : readSxcu(sxcu)
    const { namesFiles, describe } = compileHost(description)
    learn(Object.values(description.secrets ?? {}))
    return {
      traits: { namesFiles },
      put: (object, signal) => sendForm(describe(object), object, http, signal),
    }
  },
  picgo,
})

function validate({ sxcu, ...options }: HttpOptions): string | undefined {
  if (sxcu !== undefined) {
    const defaults = new Map<string, unknown>(Object.entries(config.parse({})))
    const other = Object.entries(options).find(
      ([name, value]) => !isDeepStrictEqual(value, defaults.get(name)),
    )
    if (other !== undefined) return `Set "sxcu" or "${other[0]}", not both.`
    return faultOf(() => {
      const description = readSxcu(sxcu)
      const fault = faultOf(() => compileHost(description))
      if (fault !== undefined) throw new Error(`can't be used: ${fault}`)
    }, 'The file of "sxcu" ')
  }
  const { url, headers, fields, query } = options
  if (url === undefined) return 'Set "url", or set "sxcu" to the file of a ShareX custom uploader.'
  const open = findOpenCredential(url, [headers, fields, query])
  if (open !== undefined)
    return `Move the value of "${open}" to "secrets" and write {secret:NAME} instead, so that it is masked.`
  return faultOf(() => compileHost(options))
}

function faultOf(work: () => unknown, beginning = ''): string | undefined {
  try {
    work()
    return undefined
  } catch (error) {
    return beginning + messageOf(error)
  }
}
