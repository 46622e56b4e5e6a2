import { retry } from '../flow/retry.ts'
import { localPath, secret } from '../options.ts'
import * as z from '../packages/zod.ts'
import { Problem } from '../problem.ts'
import { defineProvider, type Provider } from './contract.ts'
import { createFileTree } from './shared/file-tree.ts'
import { formHost } from './shared/form-host.ts'
import { locationAt } from './shared/location.ts'
import { joinUrl, urlPrefix } from './shared/public-url.ts'

export type { ErrorCode } from '../errors.ts'
export type { HttpClient, HttpReply, HttpRequest } from '../http/client.ts'
export type { ProblemOptions } from '../problem.ts'
export type {
  About,
  Context,
  InitChoice,
  Provider,
  Stored,
  Target,
  UploadObject,
} from './contract.ts'
export type { FileTreeOptions, RemoteFiles, UseFiles } from './shared/file-tree.ts'
export type { FormHost, HostAnswer, HostForm } from './shared/form-host.ts'
export type { z }

/**
 * SDK for external providers. The server passes it to a plugin, because an option made by `secret` of another copy of the
 * program would not be masked.
 */
export const kit = Object.freeze({
  /** Increased with each addition. Existing members stay unchanged until the next major version of upload-server. */
  version: 1,
  defineProvider,
  formHost,
  createFileTree,
  /** The bundled part of Zod 4. */
  z,
  secret,
  localPath,
  urlPrefix,
  joinUrl,
  locationAt,
  Problem,
  retry,
})

export type ProviderKit = typeof kit

/** Default export of a plugin, which is a package or a file. */
export type Plugin = (
  kit: ProviderKit,
) => Provider | readonly Provider[] | Promise<Provider | readonly Provider[]>
