import { UploadError } from '../errors.ts'
import type { Mask } from '../mask.ts'
import { isObject, membersOf } from '../members.ts'
import { baseName, REVIEW_SUFFIX } from '../payload/file-name.ts'
import type { Uploader } from '../uploader/app.ts'
import { chooseDestination } from '../uploader/destinations.ts'
import { FinalizationPending } from '../uploader/finalize.ts'
import { type AskedFile, findKnownFiles } from '../uploader/known.ts'
import { type Access, admitSameSite } from './access.ts'
import type { BaseUrl } from './base-url.ts'
import { assertSmall } from './list.ts'
import { checkOptions, readOptions } from './options.ts'
import { announceQuotas } from './rate-limit.ts'
import { readJson } from './receive.ts'
import { replyForPending, send } from './reply.ts'
import { addToLog } from './request-log.ts'
import { abortWhenGone, type UploadAnswer, type UploadRouteSettings } from './upload.ts'

/** Maximum number of files in one request. */
const MOST_FILES = 1000
/** JSON values that belong to one file: its object and three members. */
const VALUES = 4
/** Maximum size of the body, bytes: 1000 names of 1 KB with their hashes. */
const MOST_BYTES = 1_200_000

/** POST /upload/known: which files of a list the client has stored at the destination before. */
export function createKnownRoute(
  uploader: Uploader,
  access: Access,
  settings: UploadRouteSettings,
  baseOf: BaseUrl,
  mask: Mask,
): UploadAnswer {
  return async (req, res, query) => {
    const caller = await admitSameSite(req, res, query, access)
    const options = readOptions(query)
    const destination = chooseDestination(uploader, options, caller.destinations)
    addToLog(res, { destination: destination.id })
    checkOptions(options, destination)
    const { payloads } = uploader
    const { bodyIdleMs } = settings.limits
    const body = await readJson(
      req,
      res,
      { payloads, spool: destination.spool ?? uploader.spool, bodyIdleMs },
      MOST_BYTES,
      bytes => assertSmall(bytes, VALUES * MOST_FILES, tooMany),
    )
    const files = readFiles(body)
    try {
      const request = { destination, files, options, caller, requestId: req.id, baseUrl: baseOf(req) }
      const links = await findKnownFiles({ ...request, signal: abortWhenGone(res, []) }, uploader)
      if (caller.quotas) await announceQuotas(res, caller.quotas, uploader)
      addToLog(res, { inputs: files.length, known: links.filter(Boolean).length })
      res.json({ success: true, files: links.map(url => (url === undefined ? { send: true } : { url })) })
    } catch (error) {
      if (!(error instanceof FinalizationPending)) throw error
      addToLog(res, { finalizationId: error.finalizationId, problem: error.message })
      send(res, replyForPending(error, mask))
    }
  }
}

/** @throws UploadError `invalid_request`, `too_large` */
function readFiles(body: unknown): AskedFile[] {
  const files = isObject(body) ? body['files'] : undefined
  if (!Array.isArray(files))
    throw invalid(
      'The JSON body must be an object such as {"files": [{"name": "a.png", "sha256": "…", "size": 123}]}.',
    )
  if (files.length > MOST_FILES) throw tooMany()
  return files.map((file: unknown, index) => {
    const { name, sha256, size } = membersOf(file)
    if (typeof name !== 'string' || name === '') throw invalid(`"files[${index}].name" must be a file name.`)
    if (sha256 === undefined && size === undefined && name.endsWith(REVIEW_SUFFIX))
      return { name: baseName(name) }
    if (typeof sha256 !== 'string' || !/^[0-9a-f]{64}$/.test(sha256))
      throw invalid(`"files[${index}].sha256" must be a SHA-256 hash: 64 lower-case hexadecimal digits.`)
    if (!Number.isSafeInteger(size) || Number(size) < 0)
      throw invalid(`"files[${index}].size" must be a number of bytes.`)
    return { name: baseName(name), sha256, size: Number(size) }
  })
}

const tooMany = () =>
  new UploadError('too_large', `A request may ask for up to ${MOST_FILES} files. Send several requests.`)

const invalid = (message: string) => new UploadError('invalid_request', message)
