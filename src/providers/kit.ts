import { messageOf, systemCode } from '../errors.ts'
import { once } from '../flow/once.ts'
import { retry } from '../flow/retry.ts'
import { createSlots } from '../flow/slots.ts'
import { excerpt } from '../http/excerpt.ts'
import {
  explainNetwork,
  isNoTls,
  isTransient,
  isTransientStatus,
  isUntrusted,
  networkCodeOf,
  parseRetryAfter,
} from '../http/network.ts'
import { localPath, ownFile, secret } from '../options.ts'
import * as z from '../packages/zod.ts'
import { Problem } from '../problem.ts'
import { defineProvider, type Provider } from './contract.ts'
import { createFileTree } from './shared/file-tree.ts'
import { createHost, findDescriptionFault, httpAddress, literal } from './shared/form-host/index.ts'
import { createPathQueue } from './shared/path-queue.ts'
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
} from './shared/remote-path.ts'

export type { ErrorCode } from '../errors.ts'
export type { HttpClient, HttpReply, HttpRequest } from '../http/client.ts'
export type { ProblemOptions } from '../problem.ts'
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
 * SDK for external providers. The server passes it to a plugin, because an option made by `secret` of another copy of the
 * program would not be masked.
 */
export const kit = Object.freeze({
  /** Increased with each addition. Existing members stay unchanged until the next major version of upload-server. */
  version: 1,
  defineProvider,
  /** The bundled part of Zod 4. */
  z,
  secret,
  localPath,
  ownFile,
  Problem,
  messageOf,
  http: Object.freeze({
    address: httpAddress,
    excerpt,
    parseRetryAfter,
    isTransientStatus,
  }),
  network: Object.freeze({
    systemCode,
    codeOf: networkCodeOf,
    explain: explainNetwork,
    isTransient,
    isUntrusted,
    isNoTls,
  }),
  /** For hosts that accept a form or a raw body and return a URL. */
  form: Object.freeze({ createHost, literal, findFault: findDescriptionFault }),
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
  /** For servers with folders: stores, verifies, renames, and cleans up. */
  createFileTree,
  folders: Object.freeze({
    hostName,
    option: remoteFolder,
    clean: cleanFolder,
    cleanRelative,
    join: joinRemote,
    parentOf,
  }),
  flow: Object.freeze({ once, retry, createSlots, createPathQueue }),
})

export type ProviderKit = typeof kit

/** Default export of a plugin, which is a package or a file. */
export type Plugin = (
  kit: ProviderKit,
) => Provider | readonly Provider[] | Promise<Provider | readonly Provider[]>
