import { messageOf, systemCode, UploadError } from '../errors.ts'
import { once } from '../flow/once.ts'
import { retry } from '../flow/retry.ts'
import { createSlots } from '../flow/slots.ts'
import { createHttpClient, excerpt, httpOptions } from '../http/client.ts'
import {
  explainNetwork,
  isNoTls,
  isPassing,
  isPassingStatus,
  isUntrusted,
  networkCodeOf,
  parseRetryAfter,
} from '../http/network.ts'
import { localPath, ownFile, secret } from '../options.ts'
import * as z from '../packages/zod.ts'
import { defineProvider, type Provider } from './contract.ts'
import { cutBody, hashBody, lendBody, readBody, readParts } from './shared/body.ts'
import { createHost, findFault, httpAddress, literal } from './shared/form-host/index.ts'
import {
  cleanUrl,
  encodeKey,
  encodeSegment,
  joinUrl,
  toUrlSuffix,
  urlPrefix,
  urlSuffix,
  withoutSlash,
} from './shared/public-url.ts'
import {
  cleanFolder,
  cleanRelative,
  hostName,
  joinRemote,
  parentOf,
  remoteFolder,
  resolveKey,
  temporaryPath,
} from './shared/remote-path.ts'
import { createTurns } from './shared/turns.ts'

export type { ErrorCode, UploadErrorOptions } from '../errors.ts'
export type { HttpClient, HttpOptions, HttpReply, HttpRequest } from '../http/client.ts'
export type {
  About,
  InitChoice,
  Provider,
  ProviderDeps,
  Stored,
  Target,
  UploadObject,
} from './contract.ts'
export type { HostDescription } from './shared/form-host/index.ts'
export type { z }

/**
 * What a provider of others is made with, handed to it by the program that runs it: an option made by `secret` of another
 * copy would not be masked. Built-in providers use the same; docs/write-a-provider.md lists what they use beside it.
 */
export const kit = Object.freeze({
  /** Raised when something is added. What is there stays as it is until the next major version of upload-server. */
  version: 1,
  defineProvider,
  /** The part of Zod 4 that this program has. */
  z,
  secret,
  localPath,
  ownFile,
  UploadError,
  messageOf,
  http: Object.freeze({
    options: httpOptions,
    address: httpAddress,
    createClient: createHttpClient,
    excerpt,
    parseRetryAfter,
    isPassingStatus,
  }),
  network: Object.freeze({
    systemCode,
    codeOf: networkCodeOf,
    explain: explainNetwork,
    isPassing,
    isUntrusted,
    isNoTls,
  }),
  /** Hosts that take a form or a raw body and answer an address. */
  form: Object.freeze({ createHost, literal, findFault }),
  url: Object.freeze({
    prefix: urlPrefix,
    suffix: urlSuffix,
    toSuffix: toUrlSuffix,
    join: joinUrl,
    encodeKey,
    encodeSegment,
    withoutSlash,
    clean: cleanUrl,
  }),
  body: Object.freeze({ read: readBody, lend: lendBody, hash: hashBody, cut: cutBody, parts: readParts }),
  /** Servers that have folders. */
  folders: Object.freeze({
    hostName,
    option: remoteFolder,
    clean: cleanFolder,
    cleanRelative,
    join: joinRemote,
    parentOf,
    resolveKey,
    temporaryPath,
  }),
  flow: Object.freeze({ once, retry, createSlots, createTurns }),
})

export type ProviderKit = typeof kit

/** What a package or file with providers exports by default. */
export type Plugin = (
  kit: ProviderKit,
) => Provider | readonly Provider[] | Promise<Provider | readonly Provider[]>
