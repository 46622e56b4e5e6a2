import type { Caller, SourceKind } from '../uploader/input.ts'

/** What the configuration permits to a key, or to the people behind a reverse proxy. */
export interface Permissions {
  /** Each is `provider` or `provider/configName`. Default: all destinations. */
  readonly destinations?: readonly string[] | undefined
  /** Sources that may be used. Default: forms, URLs and, if roots are configured, file paths. */
  readonly sources?: readonly SourceKind[] | undefined
  /** Default: none. */
  readonly quota?: ConfiguredQuota | undefined
  /** Maximum size of a file, bytes. */
  readonly fileSize?: number | undefined
  /** Media types, such as `image/*` or `image/png`. */
  readonly types?: readonly string[] | undefined
}

interface ConfiguredQuota {
  readonly bytes?: number | undefined
  readonly files?: number | undefined
  /** Length of the window, milliseconds. */
  readonly per: number
}

type Limits = Pick<Caller, 'quotas' | 'fileSize' | 'types'>

/**
 * The limits of a client.
 *
 * @param client its name, under which its quota counts
 * @param group name of the upload key or the like that has the limits, for metrics
 * @param before limits that hold, too
 */
export function limitsOf(
  { quota, fileSize, types }: Permissions,
  client: string,
  group: string,
  before: Limits = {},
): Limits {
  const quotas = [
    ...(before.quotas ?? []),
    ...(quota ? [{ client, group, files: quota.files, bytes: quota.bytes, windowMs: quota.per }] : []),
  ]
  const sizes = [before.fileSize, fileSize].filter(size => size !== undefined)
  const groups = [...(before.types ?? []), ...(types ? [types] : [])]
  return {
    ...(quotas.length > 0 && { quotas }),
    ...(sizes.length > 0 && { fileSize: Math.min(...sizes) }),
    ...(groups.length > 0 && { types: groups }),
  }
}
